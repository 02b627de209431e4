// Package hint has the hints that more than one command prints: the command, flag or key that fixes an error or a state.
package hint

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/reach"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/sqlite"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/tracker/token"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/base"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Init is the hint for a repository without a backlog.
const Init = "set the repository up with: ralph init; if .ralph/config.yaml exists already, create that folder"

// Tracker returns the hint for an error of a tracker of this kind, or "".
func Tracker(kind tracker.Descriptor, err error) string {
	var f *transport.Failure
	switch {
	case errors.Is(err, local.ErrNoFolder):
		return Init
	case errors.Is(err, token.ErrNone):
		return kind.LoginHint + "; set it in one of these variables, or name another source: token-env, token-file or token-command"
	case !errors.As(err, &f):
		return ""
	case f.Reason == transport.TokenRefused:
		return kind.LoginHint
	case f.Reason == transport.Untrusted:
		return "give the certificates of its authority: --ca-file FILE"
	case f.Reason == transport.NoConnection, f.Reason == transport.Unexpected:
		return "check the network, and the API's address: --forge-url URL"
	}
	return ""
}

// Claims returns the hint for a remote that refuses a claim. Git has no error codes, so this matches the text of its errors; for
// other texts the hint is a general one.
func Claims(err error) string {
	if !errors.Is(err, worktree.ErrRemote) {
		return ""
	}
	const alone = "or work on this machine only: --remote none"
	says := func(words ...string) bool { return says(err, words...) }
	switch {
	case says("get a token"):
		return "set the token (token-env, token-file or token-command), " + alone
	case says("could not resolve", "failed to connect", "couldn't connect", "connection refused", "timed out", "no answer within",
		"network is unreachable", "no route to host", "connection reset", "ssl", "certificate"):
		return "the remote cannot be reached: check the network and `git remote -v`, " + alone
	case says("does not appear to be a git repository", "repository not found", "does not exist", "returned error: 404"):
		return "there is no repository at the remote's address, or the token has no access to it: check `git remote -v`, " + alone
	case Login(err) != "":
		return Login(err) + ", " + alone
	}
	return "allow ralph to push refs/ralph/*, " + alone
}

// Login returns the hint if git has no login for the remote, the remote refuses it, or it may not push; else "".
func Login(err error) string {
	refusals := []string{
		"authentication failed", "could not read username", "returned error: 401", "returned error: 403", "permission denied (publickey",
	}
	if !errors.Is(err, worktree.ErrRemote) || !says(err, refusals...) {
		return ""
	}
	return "git needs a valid login: renew the tracker's token (its variable, token-env, " +
		"token-file or token-command) or your own key, which may have expired, or allow it to push"
}

// says reports whether the error's text contains one of the words, which are lower case.
func says(err error, words ...string) bool {
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// Remote is the hint for a remote that is unavailable or refuses a push.
const Remote = "to work on this machine only, without the remote: --remote none"

// missingToken is the hint for a missing token of a forge, which no other setting replaces.
const missingToken = "set the token in one of these variables, or name another source, such as: --token-command 'gh auth token'"

// For returns the hint for any error, or "".
func For(err error) string {
	switch {
	case errors.Is(err, token.ErrNone):
		return missingToken
	case Login(err) != "":
		return Login(err) + "; " + Remote
	case errors.Is(err, worktree.ErrRemote):
		return Remote
	case errors.Is(err, base.ErrOwn):
		return "git switch BRANCH, or name the base: --base BRANCH"
	case errors.Is(err, worktree.ErrNoBase) && !errors.Is(err, worktree.ErrUnfinished):
		return "check a branch out with: git switch BRANCH"
	}
	if damaged, ok := errors.AsType[*sqlite.DamagedError](err); ok {
		return "mv " + git.Quote(damaged.Path) + " " + git.Quote(damaged.Path+".damaged")
	}
	if _, short := errors.AsType[*disk.ShortError](err); short {
		return "free some space there, or lower min-free-mb; state-dir chooses another disk for the state folder"
	}
	var failure *agents.Failure
	if away, ok := errors.AsType[*report.UnavailableError](err); ok {
		failure = away.Failure
	}
	return cmp.Or(Sandbox(err), Identity(err), Failure(failure), FullDisk(err.Error(), ""), unwritable(err), exhausted(err))
}

// Identity returns the hint for a missing identity or signing key, or "".
func Identity(err error) string {
	switch {
	case errors.Is(err, worktree.ErrNoIdentity):
		return `git config --global user.name "YOUR NAME" && git config --global user.email YOU@EXAMPLE.COM, or --commit-author "NAME <MAIL>"`
	case errors.Is(err, worktree.ErrSign):
		return "git config --global user.signingKey KEY, for a key that needs " +
			"no passphrase or is in a key agent; `git commit -S` shows more"
	}
	return ""
}

// The hints for a missing program of the agent or the reviewer.
const (
	install  = "install it where the agent runs, or choose another with "
	Agent    = install + "--agent or --agent-command"
	Reviewer = install + "--review"
)

// Failure returns the hint for an agent's failure, or "". f may be nil.
func Failure(f *agents.Failure) string {
	if f != nil && f.Class == agents.NotStarted {
		return Agent
	}
	return ""
}

// Raising returns a notice's text with the flag or key that helps.
func Raising(n sandboxes.Notice) string {
	switch n.Cause {
	case sandboxes.MemoryLimit:
		return n.Text + "; raise memory-mb if they need more"
	case sandboxes.ProcessLimit:
		return n.Text + "; raise pids if they need more"
	case sandboxes.ModelRefused:
		return n.Text + "; to allow it, name it in allow-models"
	}
	if flag := allowing(n.Subject); flag != "" {
		key, host, _ := strings.Cut(strings.TrimPrefix(flag, "--"), " ")
		return n.Text + "; " + flag + ", or " + key + ": [" + host + "], allows it"
	}
	return n.Text
}

// allowing returns the flag that allows a refused connection, or "" if none can.
func allowing(a sandboxes.Subject) string {
	r := egress.Rule{Host: a.Host}
	if a.Port != 0 && a.Port != 443 && a.Port != 80 { // a rule without ports includes these
		r.Ports = []int{a.Port}
	}
	flag := "--allow "
	addr, err := netip.ParseAddr(a.Host)
	switch {
	case a.Cause != sandboxes.NotAllowed && a.Cause != sandboxes.AddressRefused, err == nil && reach.Of(addr) == reach.Never:
		return ""
	case a.Cause == sandboxes.AddressRefused, a.Host == "localhost", err == nil && reach.Of(addr) == reach.Private:
		flag = "--allow-private "
	}
	return flag + r.String()
}

// Baseline returns the hint for a setup or gate that cannot run on the base. private reports hosts that need --allow-private.
func Baseline(e *workspace.BaselineError, private func(host string) bool) string {
	var flags []string
	for _, n := range e.Refused {
		if flag := allowing(n.Subject); flag != "" {
			if host, ok := strings.CutPrefix(flag, "--allow "); ok && private(host) {
				flag = "--allow-private " + host
			}
			if !slices.Contains(flags, flag) {
				flags = append(flags, flag)
			}
		}
	}
	if len(flags) > 0 {
		return "no agent was started; to allow the connections: " + strings.Join(flags, " ") + "; otherwise correct the command"
	}
	return "no agent was started; correct the command, or give it what it needs: " +
		"setup, --allow HOST, a longer --gate-timeout, the sandbox's image"
}

// KeptWork says where the work of a job is, and how to get it. wip is a commit of the uncommitted changes, on top of the last
// commit.
func KeptWork(commits int, branch, wip string) string {
	var kept []string
	if commits > 0 {
		kept = append(kept, fmt.Sprintf("%s kept on branch %s; get them with: %s",
			screen.Plural(commits, "commit"), branch, report.GitCommand("merge", branch)))
	}
	if wip != "" {
		kept = append(kept, fmt.Sprintf("uncommitted changes kept as %s; get them with: git cherry-pick --no-commit --mainline 1 %s",
			screen.ShortSHA(wip), screen.ShortSHA(wip)))
	}
	return strings.Join(kept, "; ")
}

// DropWith returns the hint that removes an issue's work.
func DropWith(key string) string { return "drop it with `ralph clean --discard " + key + "`" }

// Repair is the command that repairs what killed processes and damage have left.
const Repair = "ralph clean --repair"

// SkipReason says why an issue is not worked, and which command changes that.
func SkipReason(key string, s journal.Skip) string {
	next := ""
	switch {
	case s.Code == journal.SkipHuman && s.Outcome == journal.NoChange:
		next = "; nothing was changed: `ralph close " + key + "` if you agree, `ralph work " + key + "` works it again"
	case s.Code == journal.SkipHuman, s.Code == journal.SkipDone, s.Code == journal.SkipHalted:
		next = "; `ralph work " + key + "` works it again"
	case s.Code == journal.SkipReview:
		next = "; " + cmp.Or(s.Where, "`ralph diff "+key+"`, then `ralph merge "+key+"`") + "; `ralph retry " + key + "` puts it back into the backlog"
	case s.Unfit.Code == tracker.UnfitBlocked && s.WaitsFor != "": // its blocker only lacks the merge
		next = ", which is in review: " + cmp.Or(s.Where, "`ralph merge "+s.WaitsFor+"`")
	case s.Code == journal.SkipClaimed:
		next = "; `ralph logs -f " + key + "` follows the run"
	case s.Unfit.Code == tracker.UnfitClosed:
		next = "; `ralph reopen " + key + "` reopens it"
	case s.Unfit.Code == tracker.UnfitLacks:
		next = "; add the label, for example with `ralph retry " + key + "`"
	}
	return report.Skip(s) + next
}

// Commands returns the commands that reports name.
func Commands() report.Hints {
	return report.Hints{
		Work:        "ralph work KEY",
		Close:       "ralph close KEY",
		Diff:        "ralph diff KEY",
		Merge:       "ralph merge KEY",
		MergeEdited: "ralph merge --edited KEY",
		Show:        "ralph show KEY",
		Stop:        "ralph stop KEY",
		Doctor:      "ralph doctor",
		Verify:      "ralph verify KEY",
		Retest:      RetestFix,
		Warning:     Raising,
	}
}

// RetestFix is the hint for tests of a change that cannot be run.
const RetestFix = "set `retest-command` to a line that runs them where the gate runs, or set `retest: report`"

// GateFix is the hint for a project without a gate.
const GateFix = "set `gate` in .ralph/config.yaml, or give --gate"

// The texts about submodules that a gate may need.
const (
	EmptySubmodules = "their folders are empty in worktrees: neither setup nor before fetches them"
	SubmodulesFix   = `add "git submodule update --init --recursive" to setup in .ralph/config.yaml, ` +
		`and their HOST to allow; see docs/agents.md`
)
