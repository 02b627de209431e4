package record

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/identity"
	"github.com/ralph-pool/ralph/worktree/refname"
)

// Base is the commit that a run starts from, and the branch that gets its work.
type Base struct {
	Name   string `json:"name"` // as people write it: "main"
	Ref    string `json:"ref"`  // full ref; empty for a bare commit
	Commit string `json:"commit"`
	// Remote is the branch on the remote that counts as the base; empty: the local branch counts.
	Remote string `json:"remote,omitempty"`
}

// OnRemote is the remote's branch that the base is or follows; empty when there is none.
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

// Spec is what one run's worktree is made for.
type Spec struct {
	Run    string `json:"run"`    // unique id of the run
	Key    string `json:"key"`    // path-safe key of the issue; names the worktree's folder and the refs
	Branch string `json:"branch"` // short branch name, required unless Detached; Repo.BranchName(Key) for issues
	Base   Base   `json:"base"`
	// Fresh starts at Base even when earlier work exists (which is kept under refs/ralph/old).
	Fresh    bool              `json:"fresh,omitempty"`
	Without  string            `json:"without,omitempty"` // like Fresh, where the earlier work has this commit
	Identity identity.Identity `json:"identity,omitzero"` // of the run's commits
	// Private: an isolating sandbox works here. The run gets a repository of its own, with the history of base and branch,
	// and after the first call of Sandbox the host reads nothing in its folders.
	Private bool `json:"private,omitempty"`
	// Detached: a throw-away checkout of Base.Commit. It has no branch and nothing is imported from it.
	Detached bool `json:"detached,omitempty"`
	// Of is the run that a detached tree serves, if Run is a name of the tree's own.
	Of string `json:"of,omitempty"`
	// Layers tries whether the sandbox can show a private tree over a layer, with temporary files in a folder. Nil, or an error:
	// the tree is a plain checkout.
	Layers func(ctx context.Context, dir string) error `json:"-"`
	// From is the commit of the base that a detached tree is of, or builds on: what it has besides may be an agent's. Empty: no
	// filter runs.
	From string `json:"from,omitempty"`
}

// Check refuses what cannot be made.
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

// Folder is a new name for the worktree's folder: unique for key, branch and run, and starts with what people look for.
func (s Spec) Folder() string {
	unique := ""
	if s.Detached { // a run can have several
		unique = rand.Text()
	}
	return FolderPrefix(s.Key) + git.Digest(s.Key, s.Branch, s.Run, unique)
}

// FolderPrefix begins the names of a key's worktrees. A digest follows.
func FolderPrefix(key string) string { return key[:min(len(key), 80)] + "-" }

// Trusted is the commit of the base, on whose files filters run; empty: they run on none.
func (s Spec) Trusted() string {
	if s.Detached {
		return s.From
	}
	return s.Base.Commit
}
