package container

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// Labels of containers whose files are copied: where on the host they belong.
const (
	labelTree = "ralph.worktree"
	labelGit  = "ralph.git"
	labelOwn  = "ralph.mounts" // a list of mounts in JSON
)

// openCopy makes a container whose files are copied.
func (p *Provider) openCopy(ctx context.Context, pl *plan) (_ *box, err error) {
	if err := pl.makeState(); err != nil {
		return nil, err
	}
	b := pl.box()
	b.copies, err = newCopies(b, pl.spec.Worktree, pl.spec.GitDir, ownFolders(pl.mounts))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(pl.state))
	}
	engine := context.WithoutCancel(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.end(engine, pl.name+loaderSuffix), b.remove(engine))
		}
	}()
	if err := p.makeVolumes(engine, pl); err != nil {
		return nil, err
	}
	if pl.spec.Egress != "" {
		if pl.resolv, err = p.engine.tongue().resolve(ctx, p, pl.name+helperVolume); err != nil {
			return nil, err
		}
	}
	args, err := pl.arguments()
	if err != nil {
		return nil, err
	}
	if _, err := p.call(engine, args...); err != nil {
		return nil, err
	}
	if pl.spec.Egress != "" {
		b.tunnel = p.openTunnel(b, pl.spec.Egress)
	}
	if err := p.verify(ctx, b, pl); err != nil {
		return nil, err
	}
	if err := b.copies.seed(ctx, pl.spec.Pack); err != nil {
		return nil, fmt.Errorf("copy the repository in: %w", err)
	}
	if err := b.copies.send(ctx); err != nil {
		return nil, fmt.Errorf("copy the worktree in: %w", err)
	}
	return b, nil
}

// copyArguments are for volumes in the place of mounts.
func (pl *plan) copyArguments() ([]string, error) {
	p := pl.provider
	args := []string{"--label", labelTree + "=" + pl.spec.Worktree}
	if pl.spec.GitDir != "" {
		args = append(args, "--label", labelGit+"="+pl.spec.GitDir)
	}
	if own := ownFolders(pl.mounts); len(own) > 0 {
		text, err := json.Marshal(own)
		if err != nil {
			return nil, err
		}
		args = append(args, "--label", labelOwn+"="+string(text))
	}
	volumes, err := pl.volumes()
	if err != nil {
		return nil, err
	}
	for _, v := range volumes {
		flag, err := v.flag(v.readOnly, p.engine.tongue().bare)
		if err != nil {
			return nil, err
		}
		args = append(args, "--mount", flag)
	}
	return append(args, pl.resolv...), nil
}

// seed puts the pack of what the private repository borrows on the host into it.
func (c *copies) seed(ctx context.Context, pack string) error {
	if pack == "" {
		return nil
	}
	in := pipeFrom(func(w *pipeEnd) error {
		out := tar.NewWriter(w)
		for _, suffix := range []string{".pack", ".idx"} {
			if err := addFile(out, seedPack+suffix, pack+suffix, 0o444); err != nil {
				return err
			}
		}
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: seedPack + ".keep", Mode: 0o444}); err != nil {
			return err
		}
		return out.Close()
	})
	return errors.Join(c.put(ctx, in, insideUnpack, c.folders[0].inside), in.end())
}

// salvage brings out the files of a container that a crashed ralph has left.
func (p *Provider) salvage(ctx context.Context, name string) error {
	text, err := p.call(ctx, "container", "inspect", "--format", "{{json .Config.Labels}}", name)
	if err != nil {
		if there, listErr := p.exists(ctx, name); listErr == nil && !there {
			return nil
		}
		return err
	}
	var labels map[string]string
	if err := json.Unmarshal([]byte(text), &labels); err != nil {
		return fmt.Errorf("read the labels of container %s: %w", name, err)
	}
	tree := labels[labelTree]
	if tree == "" {
		return nil // its files are mounted
	}
	if info, err := os.Stat(tree); err != nil || !info.IsDir() {
		return nil //nolint:nilerr // nobody waits for them any more
	}
	git := labels[labelGit]
	if info, err := os.Stat(git); git != "" && (err != nil || !info.IsDir()) {
		git = ""
	}
	own, err := ownLeft(labels[labelOwn])
	if err != nil {
		return fmt.Errorf("read the labels of container %s: %w", name, err)
	}
	b := &box{provider: p, name: name, workdir: tree, running: make(map[*execution]struct{}), closed: true, broken: errCrashed}
	if b.copies, err = newCopies(b, tree, git, own); err != nil {
		return err
	}
	b.copies.ended = 1
	err = errors.Join(b.copies.last(ctx), b.copies.close())
	if errors.Is(err, errRefused) {
		return nil // it would be refused for ever, and what could be taken has been
	}
	if err != nil {
		return fmt.Errorf("%w; to give up what is in it: %s rm --force %s", err, p.engine.Name, name)
	}
	return nil
}

// ownLeft are the folders of a label that are still there.
func ownLeft(label string) (own []sandboxes.Mount, err error) {
	if label == "" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(label), &own)
	return slices.DeleteFunc(own, func(m sandboxes.Mount) bool {
		info, err := os.Stat(m.Host)
		return err != nil || !info.IsDir()
	}), err
}

var errCrashed = errors.New("its ralph has ended")

// exists reports whether there is a container of that name, whether it runs or not.
func (p *Provider) exists(ctx context.Context, name string) (bool, error) {
	out, err := p.call(ctx, "ps", "--all", "--filter", "name=^"+name+"$", "--format", "{{.Names}}")
	return strings.TrimSpace(out) != "", err
}

// resolveByDNS makes docker write the container's resolv.conf.
func resolveByDNS(context.Context, *Provider, string) ([]string, error) {
	var args []string
	for line := range strings.Lines(egress.ResolvConf) {
		switch words := strings.Fields(line); words[0] {
		case "nameserver":
			args = append(args, "--dns", words[1])
		case "options":
			for _, o := range words[1:] {
				args = append(args, "--dns-option", o)
			}
		}
	}
	return args, nil
}

// resolveByFile shows podman's containers the resolv.conf that is in a volume: without a network podman writes none.
func resolveByFile(ctx context.Context, p *Provider, volume string) ([]string, error) {
	dir, err := p.call(ctx, "volume", "inspect", "--format", "{{.Mountpoint}}", volume)
	if err != nil {
		return nil, err
	}
	flag, err := mountFlag(sandboxes.Mount{Host: strings.TrimSpace(dir) + "/" + resolvFile, Inside: resolvPath, ReadOnly: true}, "")
	return []string{"--mount", flag}, err
}
