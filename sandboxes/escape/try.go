package escape

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Result is the result of an attack.
type Result struct {
	Name string
	// Breaches lists what succeeded; empty: the attack was prevented. The texts may come from inside.
	Breaches []string
	// Known means that the attack succeeded, but only as the provider documents.
	Known bool
	// Err is the reason why the attack could not run.
	Err error
}

// atOnce is the number of attacks that Try runs concurrently.
const atOnce = 4

// Try runs the brief attacks that apply to the provider, on this machine. The results have the order of the list.
func Try(ctx context.Context, attacks []Attack, provider sandboxes.Provider) []Result {
	kind := provider.Capabilities().Isolation
	o := Options{Weak: Documented(kind), InPlace: kind == sandboxes.AccessRules}
	if kind == sandboxes.Container {
		addRootWeaknesses(o.Weak)
	}
	results := make([]*Result, len(attacks))
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, a := range attacks {
		if !a.Brief {
			continue
		}
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			results[i] = o.try(ctx, a, provider)
		})
	}
	all.Wait()
	var made []Result
	for _, r := range results {
		if r != nil {
			made = append(made, *r)
		}
	}
	return made
}

// try runs one attack. It returns nil if the attack does not apply to the provider.
func (o Options) try(ctx context.Context, a Attack, provider sandboxes.Provider) *Result {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &recorder{ctx: ctx}
	var s *Suite
	ended := make(chan struct{})
	go func() { // Fatal ends its goroutine
		defer close(ended)
		defer r.clean()
		defer cancel(errors.New("the attack has ended"))
		if s = o.suite(r, a, provider); a.appliesTo(s) {
			a.Make(s)
		} else {
			s.NotHere()
		}
	}()
	<-ended
	if s != nil && s.notHere && r.err == nil {
		return nil
	}
	result := &Result{Name: a.Name, Breaches: r.breaches, Err: r.err}
	result.Known = len(r.breaches) == 0 && s != nil && slices.ContainsFunc(s.weaknesses, func(w *weakness) bool { return w.seen })
	return result
}

// recorder replaces a test on a user's machine.
type recorder struct {
	ctx      context.Context
	mu       sync.Mutex
	breaches []string // guarded by mu
	err      error    // guarded by mu
	cleanups []func() // guarded by mu
}

func (r *recorder) Helper() {}

func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }

func (r *recorder) Error(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.breaches = append(r.breaches, strings.TrimSpace(fmt.Sprintln(args...)))
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Errorf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.mu.Lock()
	r.err = errors.New(strings.TrimSpace(fmt.Sprintln(args...)))
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// clean calls the functions of Cleanup, the last one first.
func (r *recorder) clean() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

func (r *recorder) TempDir() string {
	dir, remove, err := tempdir.Held("ralph-attack-")
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if err := remove(); err != nil {
			r.Error(err)
		}
	})
	return dir
}

func (r *recorder) Context() context.Context { return r.ctx }
