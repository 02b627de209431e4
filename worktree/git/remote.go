package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Time limits of a remote: for refs, and for a transfer of objects. A remote that hangs must not stop a sweep.
const (
	RefsTime     = 2 * time.Minute
	TransferTime = 20 * time.Minute
)

// withTimeout sets the time limit of a command with a remote.
func withTimeout(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: no answer within %s", ErrUnavailable, limit))
}

// remoteError marks the failure of a command as the remote's. Other errors, such as the end of ctx, stay unchanged.
func remoteError(remote string, err error) error {
	failed, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		return err
	case strings.Contains(failed.Stderr, "did not send all necessary objects") && failed.brokenRefMessage("", "") != "": // this repository has a broken ref
		return errors.New(failed.brokenRefMessage("in this repository", ""))
	case isTemporary(err):
		return fmt.Errorf("%w: %s: %w", ErrUnavailable, remote, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrRemote, remote, err)
}

// HasRemote reports whether the repository has a remote of that name.
func (g Runner) HasRemote(ctx context.Context, name string) (bool, error) {
	config, err := g.Config(ctx)
	return slices.ContainsFunc(config, func(s Setting) bool {
		section, remote, _ := s.Split()
		return section == "remote" && remote == name
	}), err
}

// RemoteURL returns the address of a remote as git uses it, or "" if there is no remote of that name.
func (g Runner) RemoteURL(ctx context.Context, name string) (string, error) {
	if has, err := g.HasRemote(ctx, name); err != nil || !has {
		return "", err
	}
	address, err := g.Output(ctx, "remote", "get-url", "--", name)
	if Failed(err) {
		return "", nil // no such remote
	}
	return address, err
}

// RemoteRefs reads refs on the remote by full names or patterns.
func (g Runner) RemoteRefs(ctx context.Context, remote string, patterns ...string) (map[string]string, error) {
	ctx, cancel := withTimeout(ctx, RefsTime)
	defer cancel()
	var out string
	err := g.tries.do(ctx, remote, func() (err error) {
		out, err = g.Output(ctx, append([]string{"ls-remote", "--refs", "--quiet", "--", remote}, patterns...)...)
		return err
	})
	if err != nil {
		return nil, remoteError(remote, err)
	}
	refs := map[string]string{}
	for line := range strings.Lines(out) {
		sha, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if ok && IsObject(sha) {
			refs[ref] = sha
		}
	}
	return refs, nil
}

// Fetch fetches objects and moves no ref. Package incoming limits the size.
func (g Runner) Fetch(ctx context.Context, remote string, what ...string) error {
	ctx, cancel := withTimeout(ctx, TransferTime)
	defer cancel()
	err := g.tries.do(ctx, remote, func() error {
		_, err := g.Output(ctx, append([]string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-prune",
			"--no-auto-maintenance", "--no-recurse-submodules", "--refmap=", "--", remote}, what...)...)
		return err
	})
	if err != nil {
		return remoteError(remote, err)
	}
	return nil
}

// MovedError is an [ErrMoved] about a remote's ref.
type MovedError struct{ Remote, Ref, At, Expected string }

func (e *MovedError) Error() string {
	return fmt.Sprintf("%s: %s on %s is at %s, expected %s",
		ErrMoved, strings.TrimPrefix(e.Ref, Heads), e.Remote, OrNothing(e.At), OrNothing(e.Expected))
}

// Unwrap makes errors.Is(err, ErrMoved) true.
func (e *MovedError) Unwrap() error { return ErrMoved }

// Push moves refs on the remote within the time limit, all or none, each from exactly Old to New. It may be repeated
// because of Old; a ref that is already at New stays. It fails with [*MovedError] for the last ref that has moved,
// [*BlockedError], [ErrNotAtomic], [ErrDeclined] or ErrRemote, or with [ErrStale] for a ref that was temporarily at another
// commit.
func (g Runner) Push(ctx context.Context, limit time.Duration, remote string, moves ...Edit) error {
	err := g.push(ctx, limit, remote, moves)
	if failed, ok := errors.AsType[*Error](err); ok && strings.Contains(failed.Stderr, "does not support --atomic") {
		return fmt.Errorf("%w: %w", ErrNotAtomic, err)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	var refs []string
	for _, m := range moves {
		refs = append(refs, m.Ref)
	}
	at, readErr := g.RemoteRefs(ctx, remote, refs...)
	if readErr != nil {
		return readErr
	}
	var pending []Edit
	for _, m := range slices.Backward(moves) {
		switch at[m.Ref] {
		case m.New:
		case m.Old:
			pending = append(pending, m)
		default:
			return &MovedError{Remote: remote, Ref: m.Ref, At: at[m.Ref], Expected: m.Old}
		}
	}
	if len(pending) == 0 {
		return nil // the moves did arrive
	}
	if blocked := findBlocking(err, remote, pending, at); blocked != nil {
		return blocked
	}
	if len(pending) == len(moves) {
		return err
	}
	slices.Reverse(pending)
	return g.Push(ctx, limit, remote, pending...)
}

func (g Runner) push(ctx context.Context, limit time.Duration, remote string, moves []Edit) error {
	ctx, cancel := withTimeout(ctx, limit)
	defer cancel()
	args := []string{
		"-c", "remote." + remote + ".mirror=false", "push", "--porcelain", "--no-verify", "--no-follow-tags",
		"--no-recurse-submodules", "--no-signed",
	}
	if len(moves) > 1 {
		args = append(args, "--atomic")
	}
	for _, m := range moves {
		args = append(args, "--force-with-lease="+m.Ref+":"+m.Old)
	}
	args = append(args, "--", remote)
	for _, m := range moves {
		args = append(args, m.New+":"+m.Ref)
	}
	var out string
	err := g.tries.do(ctx, remote, func() (err error) {
		out, err = g.Run(ctx, "", args...)
		return err
	})
	if !Failed(err) {
		return err
	}
	// A ref's own line is more precise than the summary on standard error, but may only say that another ref was refused.
	reason := ""
	for line := range strings.Lines(out) {
		parts := strings.Split(strings.TrimSpace(line), "\t")
		if len(parts) == 3 && parts[0] == "!" && (reason == "" || strings.Contains(reason, "atomic")) {
			reason = parts[2]
		}
	}
	failed, _ := errors.AsType[*Error](err)
	text := failed.brokenRefMessage("in the repository of "+remote+", which refuses every push", "from here with: git push "+Quote(remote)+" :<ref>, or ")
	switch {
	case reason == "":
		return remoteError("push to "+remote, err)
	case text != "" && strings.Contains(reason, "missing necessary objects"):
		return &refusalError{text: text, causes: []error{ErrDeclined}}
	}
	kind := ErrStale
	if strings.HasPrefix(reason, "[remote rejected]") && !isContended(reason) {
		kind = ErrDeclined
	}
	return &refusalError{text: fmt.Sprintf("push to %s: %s: %s", remote, kind, Printable(reason)), causes: []error{kind, err}}
}

// isContended reports whether a push was refused because of a concurrent one.
func isContended(refusal string) bool {
	return strings.Contains(refusal, "cannot lock ref") || strings.Contains(refusal, "failed to update ref") ||
		strings.Contains(refusal, "atomic transaction failed")
}

// refusalError is the error of a push that the remote refused.
type refusalError struct {
	text   string
	causes []error
}

// Error contains the remote's whole message, but not the remote's address.
func (e *refusalError) Error() string {
	for _, err := range e.causes {
		if failed, ok := errors.AsType[*Error](err); ok && failed.remoteMessage() != "" {
			return e.text + ": " + failed.remoteMessage()
		}
	}
	return e.text
}

// Unwrap returns the kinds of the refusal and git's error.
func (e *refusalError) Unwrap() []error { return e.causes }
