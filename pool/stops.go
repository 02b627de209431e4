package pool

import (
	"context"
	"slices"
	"sync"

	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
)

// callContexts has the contexts of one call, in the order in which they end. Stop and StopNow end one run only; see runHandle.
type callContexts struct {
	// early ends with soft, and with Drain if the call heeds Drain. It bounds waiting before a run has begun: for the remote, the
	// tracker, or a claim.
	early context.Context
	// soft ends with hard, and with the caller's context. Its end asks a run to end and keep its work.
	soft context.Context
	// hard ends with Kill. It bounds work that must not be left half done: runs, and writes to the journal, claims and labels.
	hard context.Context
}

// beginCall derives the contexts of a call from ctx. drained ends early; it may be nil. done waits until Observe has received the
// call's events. The call emits an event at its first long wait for the remote.
func (w *Worker) beginCall(ctx, drained context.Context) (s callContexts, done func()) {
	ctx = w.withWaitEvents(ctx)
	soft, stop := context.WithCancelCause(ctx)
	early, unlink := halt.Within(soft, halt.Limit{After: drained})
	known, free := halt.WithKill(context.WithoutCancel(ctx), w.lifetime)
	hard, cancel := context.WithCancelCause(known)
	unbind := context.AfterFunc(w.lifetime, func() { stop(errKilled); cancel(errKilled) }) // when hard has ended, soft has ended, too
	return callContexts{early, soft, hard}, func() {
		w.bus.Flush(soft, hard)
		unbind()
		free()
		cancel(context.Canceled)
		unlink()
		stop(context.Canceled)
	}
}

// errKilled is the cause of the contexts that Kill ends.
var errKilled = halt.Error(journal.StopShutdown, "")

// runHandle is a run that Stop and StopNow can reach, from register to unregister.
type runHandle struct {
	Running
	early        context.Context // ends with the call's early, and a grace period after soft; for waiting before the run begins
	soft         context.Context // ends with the call's soft, and with Stop; its end asks the run to end
	urgent       context.Context // ends with StopNow; its end kills the processes in the sandbox
	stop, hasten context.CancelCauseFunc
	free         func() // releases early
}

// register makes Stop and StopNow reach a run.
func (w *Worker) register(s callContexts, r journal.Record) *runHandle {
	h := &runHandle{Running: Running{Key: r.Key, Run: r.ID, Title: r.Title, Started: r.Started}}
	h.soft, h.stop = context.WithCancelCause(s.soft)
	h.early, h.free = halt.Within(s.early, halt.Grace(h.soft, w.c.Run.StopGrace))
	h.urgent, h.hasten = context.WithCancelCause(context.WithoutCancel(s.soft))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[r.Key] = append(w.running[r.Key], h)
	return h
}

// unregister ends the contexts of a run that is over. It may be called more than once.
func (w *Worker) unregister(h *runHandle) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := slices.DeleteFunc(w.running[h.Key], func(other *runHandle) bool { return other == h })
	if w.running[h.Key] = left; len(left) == 0 {
		delete(w.running, h.Key)
	}
	h.stop(nil)
	h.hasten(nil)
	h.free()
}

// awaitStopRequest waits for another process's request to stop the run, until the caller calls over. Once begun, the run itself
// waits for it, and looks at the issue first.
func (h *runHandle) awaitStopRequest(dir string) (over func()) {
	ctx, cancel := context.WithCancelCause(h.soft)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if journal.AwaitStopRequest(ctx, dir) {
			h.stop(halt.Error(journal.StopAsked, ""))
		}
	})
	return func() { cancel(nil); waiting.Wait() }
}

// Stop asks the runs of an issue to end; they keep their work. It reports whether there was one. It does not wait.
func (w *Worker) Stop(key string) bool { return w.StopRun(key, "") }

// StopRun is Stop for one run of the issue. It does nothing if that run is over.
func (w *Worker) StopRun(key, run string) bool {
	return w.eachRun(key, run, func(r *runHandle) { r.stop(halt.Error(journal.StopAsked, "")) })
}

// StopNow is Stop without a grace period: it kills the agent or the checks, and gives up a sandbox that is being opened.
func (w *Worker) StopNow(key string) bool {
	return w.eachRun(key, "", func(r *runHandle) {
		r.stop(halt.Error(journal.StopAsked, ""))
		r.hasten(halt.Error(journal.StopAsked, ""))
	})
}

// eachRun calls do with every run of an issue, or only with the named one. It reports whether there was one.
func (w *Worker) eachRun(key, run string, do func(*runHandle)) (found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.running[key] {
		if run == "" || r.Run == run {
			found = true
			do(r)
		}
	}
	return found
}
