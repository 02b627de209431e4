package container

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/sandboxes/mirror"
)

// volume is a folder of the engine's own that a container gets in the place of a mounted one.
type volume struct {
	name     string
	inside   string
	readOnly bool
	hosts    []sandboxes.Mount // what is put into it before the container is made; Inside is below the volume's
}

// Names of what belongs to a container whose files are copied start with its own, and end so.
const (
	loaderSuffix = "-load" // the container that fills the volumes
	helperVolume = "-ralph"
	treeVolume   = "-tree"
	gitVolume    = "-git"
)

// copyable refuses what copying cannot show.
func (p *Provider) copyable(spec sandboxes.Spec, mounts []sandboxes.Mount) error {
	if p.config.Files != sandboxes.Copy {
		return nil
	}
	for _, m := range mounts {
		info, err := os.Stat(m.Host)
		file := err == nil && !info.IsDir()
		if !m.ReadOnly && (!m.Own || file) {
			return fmt.Errorf("mount %s: files are copied into the container, so that it cannot write to the host: %w; make the mount readonly",
				m.Host, sandboxes.ErrUnsupported)
		}
		if file && path.Dir(m.Inside) == "/" {
			return fmt.Errorf("mount %s: a file is copied into a folder of its own, and %s is at the top: %w; choose a place in a folder",
				m.Host, m.Inside, sandboxes.ErrUnsupported)
		}
	}
	if spec.Pack != "" && spec.GitDir == "" {
		return errors.New("a pack without a private repository")
	}
	return nil
}

// volumes are all that the container gets.
func (pl *plan) volumes() ([]volume, error) {
	all := []volume{{name: pl.name + helperVolume, inside: path.Dir(helperPath), readOnly: true}, {name: pl.name + treeVolume, inside: pl.spec.Worktree}}
	if pl.spec.GitDir != "" {
		all = append(all, volume{name: pl.name + gitVolume, inside: insideFolder(pl.spec.Worktree, roleGit)})
	}
	for i, m := range ownFolders(pl.mounts) {
		all = append(all, volume{name: fmt.Sprintf("%s-own%d", pl.name, i+1), inside: m.Inside})
	}
	places := make(map[string]int)
	for _, m := range pl.mounts {
		if !m.ReadOnly {
			continue
		}
		info, err := os.Stat(m.Host)
		if err != nil {
			return nil, err
		}
		dir := m.Inside
		if !info.IsDir() {
			dir = path.Dir(dir)
		}
		i, ok := places[dir]
		if !ok {
			i = len(all)
			places[dir] = i
			all = append(all, volume{name: fmt.Sprintf("%s-mount%d", pl.name, len(places)), inside: dir, readOnly: true})
		}
		all[i].hosts = append(all[i].hosts, m)
	}
	return all, nil
}

// flag is the volume as --mount takes it; more is an option.
func (v volume) flag(readOnly bool, more string) (string, error) {
	return mountOf("volume", sandboxes.Mount{Host: v.name, Inside: v.inside, ReadOnly: readOnly}, more)
}

// makeVolumes makes the volumes and fills those that are read-only, by a container that has no other task: it runs as
// root, with no right but to give folders to a user, and nothing of an agent's has been near.
func (p *Provider) makeVolumes(ctx context.Context, pl *plan) error {
	labels := []string{"--label", labelRun + "=" + pl.spec.Run, "--label", labelOwner + "=" + p.config.Owner}
	t, loader := p.engine.tongue(), pl.name+loaderSuffix
	args := append([]string{"create", "--name", loader}, labels...)
	args = append(args, "--pull", "never", "--network", "none", "--user", "0:0", "--read-only",
		"--cap-drop", "ALL", "--cap-add", "CHOWN", "--security-opt", "no-new-privileges")
	args = append(args, t.run...)
	if pl.userns != "" {
		args = append(args, "--userns", pl.userns)
	}
	words := append([]string{p.config.Image}, p.config.Helper.Args...)
	words = append(words, insideOwn, fmt.Sprint(pl.user.uid), fmt.Sprint(pl.user.gid))
	volumes, err := pl.volumes()
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if _, err := p.call(ctx, append(append([]string{"volume", "create"}, labels...), v.name)...); err != nil {
			return err
		}
		flag, err := v.flag(false, "")
		if err != nil {
			return err
		}
		args = append(args, "--mount", flag)
		if !v.readOnly {
			words = append(words, v.inside)
		}
	}
	args = append(args, "--entrypoint", helperPath)
	if _, err := p.call(ctx, append(args, words...)...); err != nil {
		return err
	}
	for _, v := range volumes {
		if !v.readOnly {
			continue
		}
		stream := pipeFrom(func(w *pipeEnd) error { return pl.fill(w, v) })
		// Podman writes all of it to a file first, and forgets the file.
		_, err := p.callWith(ctx, input{from: stream, temp: pl.state, limit: copyLimit}, "cp", "-", loader+":"+v.inside)
		if err := errors.Join(stream.end(), err); err != nil {
			return fmt.Errorf("copy into the container: %w", err)
		}
	}
	if _, err := p.call(ctx, "start", "--attach", loader); err != nil {
		return err
	}
	_, err = p.call(ctx, append(t.remove, loader)...)
	return err
}

// fill writes what a read-only volume holds. Everybody inside may read it.
func (pl *plan) fill(w io.Writer, v volume) error {
	out := tar.NewWriter(w)
	if v.inside == path.Dir(helperPath) {
		if err := addFile(out, path.Base(helperPath), pl.provider.config.Helper.Path, 0o555); err != nil {
			return err
		}
		text := egress.ResolvConf
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: resolvFile, Mode: 0o444, Size: int64(len(text))}); err != nil {
			return err
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	for _, m := range v.hosts {
		if err := addMount(out, m, v.inside); err != nil {
			return fmt.Errorf("mount %s: %w", m.Host, err)
		}
	}
	return out.Close()
}

func addMount(out *tar.Writer, m sandboxes.Mount, at string) error {
	info, err := os.Stat(m.Host)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return addFile(out, strings.TrimPrefix(m.Inside, at+"/"), m.Host, readable(info.Mode().Perm()))
	}
	root, err := os.OpenRoot(m.Host)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	list, err := mirror.List(root, nil)
	if err != nil {
		return err
	}
	for i := range list {
		list[i].Mode = readable(list[i].Mode)
	}
	return mirror.Add(out, root, list)
}

// readable lets everybody read, and run or enter what its owner may.
func readable(mode fs.FileMode) fs.FileMode {
	if mode&0o100 != 0 {
		mode |= 0o111
	}
	return mode | 0o444
}

func addFile(out *tar.Writer, name, from string, mode fs.FileMode) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is neither a file nor a folder")
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode), Size: info.Size(), Format: tar.FormatPAX}
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(out, f, h.Size)
	return err
}

// removeVolumes removes the volumes whose names start so.
func (p *Provider) removeVolumes(ctx context.Context, prefix string) error {
	out, err := p.call(ctx, "volume", "ls", "--quiet", "--filter", "label="+labelRun)
	for range endRounds { // podman fails when somebody removes another one meanwhile
		if err == nil || !strings.Contains(err.Error(), "no such volume") {
			break
		}
		out, err = p.call(ctx, "volume", "ls", "--quiet", "--filter", "label="+labelRun)
	}
	if err != nil {
		return fmt.Errorf("look for volumes: %w", err)
	}
	args := []string{"volume", "rm", "--force"}
	for name := range strings.FieldsSeq(out) {
		if strings.HasPrefix(name, prefix) {
			args = append(args, name)
		}
	}
	if len(args) == 3 {
		return nil
	}
	_, err = p.call(ctx, args...)
	return err
}
