package pool_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/mirror"
)

// copying is a provider whose commands work on copies: of the worktree, and of the private repository with the pack of what
// it borrows and without the way to the user's objects.
type copying struct {
	*sandboxes.None
	t *testing.T
}

func (copying) Name() string { return "copying" }

func (copying) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{Files: sandboxes.Copy, Isolation: sandboxes.VM}
}

func (c copying) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	if len(spec.Objects) > 0 {
		return nil, errors.New("a copy cannot see objects of the host")
	}
	work, git := c.t.TempDir(), c.t.TempDir()
	pack := filepath.Join(git, "objects", "pack")
	err := os.MkdirAll(pack, 0o755)
	for _, suffix := range []string{".pack", ".idx"} {
		text, readErr := os.ReadFile(spec.Pack + suffix)
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(pack, "pack-seed"+suffix), text, 0o444))
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(pack, "pack-seed.keep"), nil, 0o444))
	if err != nil {
		return nil, err
	}
	skip := func(p string) bool { // neither side tells of these
		return p == "objects/info/alternates" || strings.HasPrefix(p, "objects/pack/pack-seed.")
	}
	b := &copyBox{}
	for host, inside := range map[string]string{spec.Worktree: work, spec.GitDir: git} {
		h, err := os.OpenRoot(host)
		if err != nil {
			return nil, err
		}
		i, err := os.OpenRoot(inside)
		if err != nil {
			return nil, err
		}
		b.pairs = append(b.pairs, copyPair{&mirror.Tree{Root: h, Links: true, Skip: skip}, i})
	}
	if err := b.send(); err != nil {
		return nil, err
	}
	spec.Worktree, spec.Env = work, append(spec.Env, "GIT_DIR="+git, "GIT_WORK_TREE="+work)
	b.Sandbox, err = c.None.Open(ctx, spec)
	return b, err
}

type copyPair struct {
	*mirror.Tree
	inside *os.Root
}

type copyBox struct {
	sandboxes.Sandbox
	pairs []copyPair
}

func (b *copyBox) send() error {
	for _, p := range b.pairs {
		changed, gone, err := p.Changed()
		if err != nil {
			return err
		}
		var text bytes.Buffer
		err = errors.Join(mirror.Remove(p.inside, gone), mirror.Pack(&text, p.Root, changed), mirror.Unpack(&text, p.inside))
		if err != nil {
			return err
		}
		p.Sent(changed, gone, nil)
	}
	return nil
}

func (b *copyBox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if err := b.send(); err != nil {
		return sandboxes.Exit{}, err
	}
	exit, err := b.Sandbox.Exec(ctx, cmd)
	for _, p := range b.pairs {
		list, listErr := mirror.List(p.inside, mirror.Skipping(p.Skip))
		_, takeErr := p.Apply(context.WithoutCancel(ctx), list, func(paths []string) (io.ReadCloser, error) {
			var wanted []mirror.Entry
			for _, at := range paths {
				wanted = append(wanted, mirror.Entry{Path: at, Kind: mirror.File})
			}
			var text bytes.Buffer
			err := mirror.Pack(&text, p.inside, wanted)
			return io.NopCloser(&text), err
		})
		err = errors.Join(err, listErr, takeErr)
	}
	return exit, err
}

func (b *copyBox) Close(ctx context.Context) error {
	err := b.Sandbox.Close(ctx)
	for _, p := range b.pairs {
		err = errors.Join(err, p.Root.Close(), p.inside.Close())
	}
	return err
}

func (*copyBox) Left() string { return "1 of the sandbox's files are not taken" }

func TestSandboxThatCopies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits+`; echo undone > undone.txt; git gc -q --prune=now`)
	f.Config.Sandboxes = copying{sandboxes.NewNone(sandboxes.NoneConfig{}), t}
	f.Config.Gate = lines(`git diff --quiet HEAD -- "$RALPH_ISSUE_KEY.txt" && test "$(git log --oneline main..HEAD | wc -l)" -eq 1 && git fsck && test -z "$(git for-each-ref refs/ralph)"`)
	f.issue("a")
	rec := f.only(f.sweep(context.Background()))
	if rec.Verdict.Outcome != pool.Succeeded || rec.Verdict.Commits != 1 || rec.Verdict.WIP == "" {
		t.Fatalf("verdict %+v", rec.Verdict)
	}
	if text := f.git(f.repo, "show", "ralph/a:a.txt"); text != "work" {
		t.Errorf("a.txt is %q", text)
	}
	if text := f.git(f.repo, "show", rec.Verdict.WIP+":undone.txt"); text != "undone" {
		t.Errorf("undone.txt is %q", text)
	}
	f.clean()
}
