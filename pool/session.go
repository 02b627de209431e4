package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// session is a run's worktree and sandbox.
type session struct {
	base    worktree.Base
	tree    *worktree.Tree
	sandbox sandboxes.Sandbox
	way     *wayOut
	work    worktree.HandBack // the latest
	saved   string            // uncommitted changes that a rebase has taken out of the worktree
	whole   string            // the tip that is known to have no nested repository
	disk    *account          // what it writes; nil: nobody looks
}

// accept refuses commits that only look complete: the files of a nested repository are in none of them.
func (s *session) accept(ctx context.Context) error {
	links, err := s.tree.Gitlinks(ctx, s.work)
	switch {
	case err != nil:
		return err
	case len(links) > 0:
		return fmt.Errorf("%s is a git repository inside the repository, so its files are not in your commit: remove its .git folder, `git rm --cached` it, and commit the files",
			strings.Join(links, ", "))
	}
	s.whole = s.work.Tip
	return nil
}

// open makes the worktree and the sandbox. On an error the session may be nil or have a tree only; close copes.
func (w *worker) open(ctx context.Context) (*session, error) {
	if err := w.step(ctx, StepWorktree); err != nil {
		return nil, err
	}
	base, err := w.p.base(ctx)
	if err != nil {
		return nil, err
	}
	w.rec.Base = base.Name
	s := &session{base: base}
	s.tree, err = w.p.cfg.Repo.Add(ctx, worktree.Spec{Run: w.rec.Run, Key: w.rec.Key, Branch: w.rec.Branch, Base: base})
	if err != nil {
		return s, err
	}
	s.disk = w.account(ctx, s.tree)
	if err := s.tree.CopyIn(ctx, w.p.cfg.Copy); err != nil {
		return s, err
	}
	if err := w.before(ctx, s); err != nil {
		return s, err
	}
	if err := w.step(ctx, StepSandbox); err != nil {
		return s, err
	}
	return s, w.openSandbox(ctx, s)
}

// base is what a run starts from. Where branches go to a remote, the remote's idea of the base counts: a checkout that
// nobody pulls into would start every run further behind.
func (p *Pool) base(ctx context.Context) (worktree.Base, error) {
	base, err := p.cfg.Repo.Base(ctx, p.cfg.Base)
	remote := p.cfg.Repo.Remote()
	if err != nil || remote == "" || p.cfg.Publish == PublishMerge || p.cfg.Publish == PublishNone {
		return base, err
	}
	branch := strings.TrimPrefix(base.Name, remote+"/")
	tip, err := p.cfg.Repo.RemoteBranch(ctx, branch)
	if err != nil || tip == "" {
		return base, err
	}
	base.Remote = branch
	newer := p.cfg.Publish == PublishRequest
	if !newer {
		newer, err = p.cfg.Repo.Contains(ctx, tip, base.Commit)
	}
	if newer {
		base.Commit = tip
	}
	return base, err
}

func (w *worker) openSandbox(ctx context.Context, s *session) error {
	if s.sandbox != nil {
		return nil
	}
	c := w.p.cfg
	spec := sandboxes.Spec{
		Run: w.rec.Run, Worktree: s.tree.Dir(), Env: append(w.facts(), agents.Conceal(c.Env)...), Mounts: c.Mounts, Limits: c.Limits,
	}
	if !c.Sandboxes.Capabilities().Isolated() {
		spec.Env = append(w.facts(), c.Env...)
	}
	err := separate(ctx, c.Sandboxes, s.tree, &spec)
	if err != nil {
		return err
	}
	s.way, err = leaving{
		run: w.rec.Run, provider: c.Sandboxes, network: c.Network, agent: c.Agent, options: c.Options,
		secrets: w.p.secrets, log: w.log, observe: w.refusal,
	}.open()
	if err != nil {
		return err
	}
	spec.Egress = s.way.socket
	s.sandbox, err = c.Sandboxes.Open(ctx, spec)
	if err != nil {
		err = errors.Join(fmt.Errorf("sandbox %s: %w", c.Sandboxes.Name(), err), s.way.close())
		// A worktree with earlier work may itself be why: it must not keep the others from theirs.
		if !w.p.opened.Load() && s.tree.Start() == s.base.Commit {
			err = &SandboxError{err}
		}
		return err
	}
	w.p.opened.Store(true)
	s.disk.also(s.sandbox)
	return nil
}

// facts are what every command in the sandbox finds in its environment.
func (w *worker) facts() []string {
	title, _ := tracker.Clean(w.issue.Title)
	return []string{
		"RALPH_RUN=" + w.rec.Run,
		"RALPH_ISSUE_KEY=" + w.rec.Key,
		"RALPH_ISSUE_TITLE=" + strings.ReplaceAll(title, "\n", " "),
		"RALPH_ISSUE_URL=" + w.rec.URL,
		"RALPH_BRANCH=" + w.rec.Branch,
		"RALPH_BASE=" + w.rec.Base,
		fmt.Sprintf("RALPH_ATTEMPT=%d", w.rec.Attempt),
	}
}

// before runs the host commands. It is the only place where anything of the user's runs outside the sandbox, and no
// agent has been in the worktree yet.
func (w *worker) before(ctx context.Context, s *session) error {
	for i, line := range w.p.cfg.Before {
		tail := proc.NewTail(4 << 10)
		log, err := w.files.stream(fmt.Sprintf("before-%d.log", i+1))
		if err != nil {
			return err
		}
		both := io.MultiWriter(log, tail) // one writer, which one goroutine writes to
		limit, cancel := context.WithTimeoutCause(ctx, beforeTimeout, fmt.Errorf("no end within %s", beforeTimeout))
		exit, err := proc.Run(limit, proc.Spec{
			Argv: []string{"/bin/sh", "-c", line}, Dir: s.tree.Dir(), Env: append(os.Environ(), w.facts()...),
			Stdout: both, Stderr: both, Mark: w.rec.Run, Interrupt: w.stop.done,
		})
		cancel()
		cerr := log.Close()
		switch {
		case err != nil:
			return fmt.Errorf("host command %q: %w", line, err)
		case exit.Code != 0:
			return fmt.Errorf("host command %q: exit status %d: %s", line, exit.Code, lastLine(tail.String()))
		case cerr != nil:
			return cerr
		}
	}
	return nil
}

const beforeTimeout = 15 * time.Minute

// loop lets the agent work.
func (w *worker) loop(ctx context.Context, s *session) loop.Result {
	if err := w.step(ctx, StepLoop); err != nil {
		return loop.Result{End: loop.EndSandbox, Err: err}
	}
	budget, err := w.budgetLeft(ctx)
	if err != nil {
		return loop.Result{End: loop.EndSandbox, Err: err}
	}
	prompt := w.p.cfg.Prompt
	prompt.Builtin, w.hidden = builtins(w.issue, w.rec)
	timers := w.p.cfg.Timers
	timers.Interrupt = w.p.cfg.StopGrace
	before, err := w.workBefore(ctx, s)
	if err != nil {
		return loop.Result{End: loop.EndHandBack, Err: err}
	}
	w.p.learn()
	defer w.p.learn() // an agent on the host renews its own login
	res := loop.Run(ctx, loop.Config{
		Agent: w.p.cfg.Agent, Options: s.way.options, Sandbox: s.sandbox, Prompt: prompt, Before: before,
		HandBack: w.handBack(s), Feedback: w.feedback,
		Accept: s.accept,
		Setup:  w.p.cfg.Setup, Gate: w.p.cfg.Gate, Signals: w.p.cfg.Signals,
		MaxIterations: w.p.cfg.MaxIterations, NoProgress: w.p.cfg.NoProgress, Timers: timers, Budget: budget,
		Interrupt: w.stop.done, Observe: w.observe, Stream: w.files.stream,
	})
	w.gated = Gated{}
	if res.GatePassed() {
		w.gated = Gated{Tip: res.Work.Tip, Base: s.base.Commit}
	}
	return res
}

// workBefore is what is there before the agent starts. Only a host command or a copied file can have changed the
// worktree by then.
func (w *worker) workBefore(ctx context.Context, s *session) (loop.Work, error) {
	if len(w.p.cfg.Before) > 0 || len(w.p.cfg.Copy) > 0 {
		return s.handBack(ctx)
	}
	h, err := s.tree.Earlier(ctx)
	return loop.Work{Tip: h.Tip, Commits: len(h.Commits)}, err
}

// handBack takes the commits back, and writes down how many there are for who looks at the run meanwhile.
func (w *worker) handBack(s *session) func(context.Context) (loop.Work, error) {
	return func(ctx context.Context) (loop.Work, error) {
		work, err := s.handBack(ctx)
		if err != nil || work.New == 0 {
			return work, err
		}
		w.rec.Verdict.Tip, w.rec.Verdict.Commits = work.Tip, work.Commits
		if err := w.p.cfg.Journal.save(context.WithoutCancel(ctx), &w.rec); err != nil {
			w.log.Warn().Err(err).Msg("commits not noted")
		}
		return work, nil
	}
}

// handBack takes the commits back for the loop.
func (s *session) handBack(ctx context.Context) (loop.Work, error) {
	h, err := s.tree.HandBack(ctx)
	if err != nil {
		return loop.Work{}, err
	}
	s.work = h
	return loop.Work{Tip: h.Tip, Commits: len(h.Commits), New: h.New}, nil
}

// close takes back what is left, then removes the sandbox and the worktree. A worktree whose work cannot be taken
// back stays.
func (s *session) close(ctx context.Context) (warnings []string) {
	warnings = s.shut(ctx)
	if s == nil || s.tree == nil {
		return warnings
	}
	defer s.disk.close()
	warnings = append(warnings, s.rescue(ctx)...)
	h, err := s.tree.Close(ctx)
	if err != nil {
		warnings = append(warnings, fmt.Sprintf("the worktree %s stays: %v", s.tree.Dir(), err))
	}
	if h.Tip != "" {
		s.work = h
	}
	return warnings
}

// shut removes the sandbox; the worktree stays as it is.
func (s *session) shut(ctx context.Context) (warnings []string) {
	if s == nil {
		return nil
	}
	if s.sandbox != nil {
		if err := s.sandbox.Close(ctx); err != nil {
			warnings = append(warnings, "sandbox: "+err.Error())
		}
		warnings = append(append(append(warnings, noticesOf(s.sandbox)...), leftInside(s.sandbox)...), refusedBy(s.sandbox)...)
		s.sandbox = nil
	}
	warnings = append(warnings, s.way.refused()...)
	if err := s.way.close(); err != nil {
		warnings = append(warnings, "network: "+err.Error())
	}
	s.way = nil
	return warnings
}

// noticesOf is what a closed sandbox has to tell, for people.
func noticesOf(box sandboxes.Sandbox) (lines []string) {
	for _, n := range sandboxes.NoticesOf(box) {
		lines = append(lines, "sandbox: "+n)
	}
	return lines
}

// rescue keeps the files of nested repositories, which are in no commit.
func (s *session) rescue(ctx context.Context) (warnings []string) {
	if len(s.work.Commits) == 0 || s.whole == s.work.Tip {
		return nil
	}
	links, err := s.tree.Gitlinks(ctx, s.work)
	kept := ""
	if err == nil && len(links) > 0 {
		kept, err = s.tree.Rescue(links)
	}
	switch {
	case err != nil:
		return []string{err.Error()}
	case kept != "":
		return []string{fmt.Sprintf("%s is a nested repository whose files are in no commit; they are kept in %s", strings.Join(links, ", "), kept)}
	}
	return nil
}

// builtins are the prompt's facts about the issue, with the number of invisible characters taken out of its text.
func builtins(issue tracker.Issue, rec Record) (map[string]string, int) {
	total := 0
	clean := func(s string) string {
		s, n := tracker.Clean(s)
		total += n
		return s
	}
	var comments strings.Builder
	for _, c := range issue.Comments {
		if c.Trusted {
			fmt.Fprintf(&comments, "%s wrote:\n%s\n\n", clean(c.Author), clean(c.Body))
		}
	}
	return map[string]string{
		"branch": rec.Branch, "base": rec.Base,
		"issue_key": rec.Key, "issue_id": clean(issue.ID), "issue_title": clean(issue.Title),
		"issue_body": clean(issue.Body), "issue_url": rec.URL, "issue_labels": clean(strings.Join(issue.Labels, ", ")),
		"issue_comments": comments.String(), "attempt": fmt.Sprint(rec.Attempt),
	}, total
}

// PromptKeys are the keys that a prompt template may use besides those that every loop knows; see loop.Prompt.Check.
func PromptKeys() []string {
	m, _ := builtins(tracker.Issue{}, Record{})
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}
