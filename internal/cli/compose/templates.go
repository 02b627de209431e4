package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Prompt returns the template: prompt-file, else .ralph/prompt.md, else the zero value for the built-in one.
func (p *Parts) Prompt(ctx context.Context) (prompt.Prompt, error) {
	path := p.PromptFile
	if path == "" {
		path = filepath.Join(p.Top, scaffold.Prompt)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return prompt.Prompt{}, nil
		}
	}
	text, err := p.readText(ctx, "prompt-file", path)
	return prompt.Prompt{Template: string(text), Name: path}, err
}

// readText reads the file of a setting whose text is sent to a model or a forge. Unless the user named the file, its text
// must be in git's index: other files of a checkout may be private, such as keys.
func (p *Parts) readText(ctx context.Context, key, path string) ([]byte, error) {
	if err := p.Loaded.Inside(key, path); err != nil {
		return nil, err
	}
	read := git.ReadLinked // does not block on a pipe
	if p.Loaded.Users(key, path) {
		read = os.ReadFile
	}
	text, err := read(path)
	if err != nil {
		return nil, p.Wrong(key, err)
	}
	if p.ShowsKeys(path) {
		return nil, p.Wrong(key, NoTemplate(path))
	}
	if p.Loaded.Users(key, path) || p.ownPrompt(path) {
		return text, nil
	}
	as, err := p.inIndex(ctx, path, text)
	if err != nil || as {
		return text, err
	}
	k, _ := keys.Lookup(key)
	return nil, p.Wrong(key, fmt.Errorf("%s differs from git's index, so it may contain private text; git add it, or give --%s",
		path, k.Flag()))
}

// NoTemplate returns the error of a template that holds keys of the user.
func NoTemplate(path string) error {
	return fmt.Errorf("%s contains your keys, so it cannot be a template", path)
}

// ownPrompt reports whether path is the prompt at its default place, without links.
func (p *Parts) ownPrompt(path string) bool {
	dir := filepath.Join(p.Top, scaffold.Dir)
	folder, err := os.Lstat(dir)
	file, ferr := os.Lstat(path)
	return path == filepath.Join(p.Top, scaffold.Prompt) && err == nil && ferr == nil && folder.IsDir() && file.Mode().IsRegular()
}

// inIndex reports whether git's index has the file at path, links followed, with this text.
func (p *Parts) inIndex(ctx context.Context, path string, text []byte) (bool, error) {
	top, err := filepath.EvalSymlinks(p.Top)
	if err != nil {
		return false, err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false, err
	}
	rel, err := filepath.Rel(top, real)
	if err != nil || !filepath.IsLocal(rel) {
		return false, nil //nolint:nilerr // on another volume
	}
	g, rel := p.Repo.Git().WithDir(p.Top), filepath.ToSlash(rel)
	has, err := g.Run(ctx, "", "rev-parse", "--verify", "--quiet", ":0:"+rel)
	if git.Failed(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	programs, err := g.Config(ctx)
	if err != nil {
		return false, err
	}
	// hash-object must run no filter: it would run on the host, and its program may be a file of the repository.
	is, err := g.With(programs.WithoutPrograms()...).Run(ctx, string(text), "hash-object", "--stdin", "--path="+rel)
	return strings.TrimSpace(is) == strings.TrimSpace(has), err
}

// ShowsKeys reports whether path is, or contains, the file of the user's keys.
func (p *Parts) ShowsKeys(path string) bool {
	keys, err := filepath.EvalSymlinks(filepath.Join(p.Top, DotEnvFile))
	if err != nil {
		return false
	}
	if at, err := os.Stat(path); err == nil {
		if file, err := os.Stat(keys); err == nil && os.SameFile(at, file) {
			return true
		}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(real, keys)
	return err == nil && filepath.IsLocal(rel)
}

// autoMerge is the value of publish with which the forge itself merges a request.
const autoMerge = "auto-merge"

// publishMode converts a value of publish: for auto it returns "", with which the tracker decides.
func publishMode(s string) journal.Publish {
	switch s {
	case "auto":
		return ""
	case autoMerge:
		return journal.PublishRequest
	}
	return journal.Publish(s)
}

func (p *Parts) requests(ctx context.Context) (publish.Requests, error) {
	r := publish.Requests{
		Target: p.RequestTarget, Labels: p.RequestLabels, Reviewers: p.Reviewers, Assignees: p.RequestAssignees,
		MaxRounds: cmp.Or(p.MaxRounds, -1), AutoMerge: p.Publish == autoMerge,
	}
	if _, can := tracker.As[tracker.AutoMerger](p.Backlog); r.AutoMerge && !can && p.Backlog != nil {
		return r, p.Wrong("publish", fmt.Errorf("%s needs a forge that can merge requests, and tracker %s cannot; use merge",
			autoMerge, p.Backlog.Name()))
	}
	if p.RequestTemplate == "" {
		return r, nil
	}
	text, err := p.readText(ctx, "request-template", p.RequestTemplate)
	r.Body = prompt.Prompt{Template: string(text), Name: p.RequestTemplate}
	return r, err
}
