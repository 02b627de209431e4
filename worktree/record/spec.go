package record

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/identity"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
)

// Base is the commit that a run starts from, and the branch that its work is for.
type Base struct {
	Name   string `json:"name"` // as people write it, such as "main"
	Ref    string `json:"ref"`  // full ref; empty if the base is only a commit
	Commit string `json:"commit"`
	// Remote is the branch on the remote that is the base; empty: the local branch is.
	Remote string `json:"remote,omitempty"`
}

// OnRemote returns the remote's branch that the base is or follows, or "".
func (b Base) OnRemote(remote string) string {
	if remote == "" || b.Remote != "" {
		return b.Remote
	}
	if branch, ok := strings.CutPrefix(b.Ref, "refs/remotes/"+remote+"/"); ok {
		return branch
	}
	branch, _ := strings.CutPrefix(b.Ref, git.Heads)
	return branch
}

// Spec describes what a run's worktree is made for.
type Spec struct {
	Run    string `json:"run"`    // unique ID of the run
	Key    string `json:"key"`    // path-safe key of the issue; part of the names of folder and refs
	Branch string `json:"branch"` // short branch name; default for Add, unless Detached: Repo.BranchName(Key)
	Base   Base   `json:"base"`
	// Fresh starts at Base even if earlier work exists, which is kept under refs/ralph/old.
	Fresh          bool              `json:"fresh,omitempty"`
	ExcludedCommit string            `json:"without,omitempty"` // like Fresh, if the earlier work contains this commit
	Identity       identity.Identity `json:"identity,omitzero"` // names on the run's commits
	// Private says that an isolating sandbox works here. The run gets its own repository with the history of base and
	// branch. After the first call of Sandbox, the host reads nothing in its folders.
	Private bool `json:"private,omitempty"`
	// Detached means a throw-away checkout of Base.Commit, without a branch. Nothing is imported from it.
	Detached bool `json:"detached,omitempty"`
	// ParentRun is the run that a detached tree serves, if Run is the tree's own name.
	ParentRun string `json:"of,omitempty"`
	// Layers tests whether the sandbox can show a private tree over a layer; dir is for temporary files. If it is nil or
	// fails, the tree is a plain checkout.
	Layers func(ctx context.Context, dir string) error `json:"-"`
	// RemoteTips has the tips that Repo.RemoteTips returned after the claim, by branch. Nil: the remote is asked.
	RemoteTips map[string]string `json:"-"`
	// FilterBase is the base commit of a detached tree's commit: files beyond it may be an agent's. Empty: no filter runs.
	FilterBase string `json:"from,omitempty"`
}

// WithBranch returns the spec with the branch if it names none and is not Detached.
func (s Spec) WithBranch(branch string) Spec {
	if s.Branch == "" && !s.Detached {
		s.Branch = branch
	}
	return s
}

// Check refuses a spec that cannot be made.
func (s Spec) Check() error {
	if s.Run == "" || s.Base.Commit == "" {
		return errors.New("run and base are required")
	}
	if err := refname.CheckKey(s.Key); err != nil {
		return err
	}
	if s.Detached && s.Branch == "" {
		return nil
	}
	if s.Detached {
		return errors.New("a detached tree has no branch")
	}
	return git.CheckBranch(s.Branch)
}

// Folder returns a new name for the worktree's folder. It is unique for key, branch and run, and begins with the key, which
// people look for.
func (s Spec) Folder() string {
	unique := ""
	if s.Detached { // a run can have several
		unique = rand.Text()
	}
	return FolderPrefix(s.Key) + git.Digest(s.Key, s.Branch, s.Run, unique)
}

// FolderPrefix returns the prefix of the names of a key's worktrees. A digest follows it.
func FolderPrefix(key string) string { return key[:min(len(key), 80)] + "-" }

// Trusted returns the base commit on whose files filters run; empty: no filter runs.
func (s Spec) Trusted() string {
	if s.Detached {
		return s.FilterBase
	}
	return s.Base.Commit
}
