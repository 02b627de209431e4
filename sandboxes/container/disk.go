package container

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/inside"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/syntax"
	"github.com/ralph-pool/ralph/sandboxes/egress/forward"
)

// A container with a Disk shows nothing of the host, so the engine may be on another machine. Each folder is a volume of
// the engine. Another volume holds the helper, and one that is never mounted marks the disk as filled.
const (
	helperVolume = "helper"
	filledVolume = "filled"
	folderPrefix = "folder-"
	loaderSuffix = "-load" // suffix of the container that prepares the volumes
	fillerSuffix = "-fill" // suffix of the container that fills them in advance
)

// loadLimit is the time limit for copying the helper to the engine.
const loadLimit = 10 * time.Minute

// volumeName returns the name of one of the run's volumes. It depends only on the arguments, so no record is needed.
func volumeName(run, name string) string { return containerName(run, "disk-"+name) }

// openDisk starts a container with a Disk. If an earlier container of the run has filled its volumes, it reuses them.
func (p *Provider) openDisk(ctx context.Context, pl *plan) (_ *box, err error) {
	engine := context.WithoutCancel(ctx)
	if err := errors.Join(p.endContainers(engine, pl.spec.Run, p.end), p.removeFiles(pl.spec.Run)); err != nil {
		return nil, err
	}
	volumes, err := p.volumes(engine, pl.spec.Run)
	if err != nil {
		return nil, err
	}
	filled := slices.Contains(volumes, volumeName(pl.spec.Run, filledVolume))
	if !filled { // neither the volumes' content nor the containers that Keep left are needed
		err := errors.Join(p.endContainers(engine, pl.spec.Run, p.Discard), p.RemoveDisk(engine, pl.spec.Run), p.createVolume(engine, pl, helperVolume))
		if err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			ctx, cancel := cleanUp(ctx)
			defer cancel()
			err = errors.Join(err, p.endContainers(ctx, pl.spec.Run, p.end), os.RemoveAll(pl.state))
			if !filled {
				err = errors.Join(err, p.RemoveDisk(ctx, pl.spec.Run))
			}
		}
	}()
	if err := pl.makeState(); err != nil {
		return nil, err
	}
	if err := p.prepareVolumes(engine, pl); err != nil {
		return nil, err
	}
	inAdvance := !filled && len(pl.spec.Disk.ReadOnly) > 0
	if inAdvance {
		if err := p.fillInAdvance(ctx, pl); err != nil {
			return nil, err
		}
	}
	b, err := p.startOnDisk(ctx, pl)
	if err != nil || filled {
		return b, err
	}
	if !inAdvance {
		if err := pl.spec.Disk.Fill(ctx, b); err != nil {
			b.tunnel.close()
			return nil, err
		}
	}
	return b, p.createVolume(engine, pl, filledVolume)
}

// createVolume creates a volume with the run's labels: volumes that an engine creates for a container have none.
func (p *Provider) createVolume(ctx context.Context, pl *plan, name string) error {
	_, err := p.call(ctx, slices.Concat([]string{"volume", "create"}, pl.labels(), []string{volumeName(pl.spec.Run, name)})...)
	return err
}

// fillInAdvance fills the disk with a separate container that can write to all folders.
func (p *Provider) fillInAdvance(ctx context.Context, pl *plan) error {
	filler := *pl
	filler.name += fillerSuffix
	filler.writableDisk, filler.spec.Egress, filler.spec.Name = true, "", ""
	b, err := p.startOnDisk(ctx, &filler)
	if err != nil {
		return err
	}
	if err := pl.spec.Disk.Fill(ctx, b); err != nil {
		return err
	}
	ctx, cancel := cleanUp(ctx)
	defer cancel()
	return p.end(ctx, b.name)
}

// startOnDisk starts a container and returns when commands can run in it.
func (p *Provider) startOnDisk(ctx context.Context, pl *plan) (_ *box, err error) {
	engine, b := context.WithoutCancel(ctx), pl.box()
	defer func() {
		if err != nil {
			b.tunnel.close()
		}
	}()
	if pl.spec.Egress != "" || pl.ownHosts() {
		if pl.resolv, err = p.engine.dialect().resolve(ctx, pl, volumeName(pl.spec.Run, helperVolume)); err != nil {
			return nil, err
		}
	}
	args, err := pl.arguments()
	if err != nil {
		return nil, err
	}
	if _, err := p.call(engine, args...); err != nil {
		return nil, p.explainRun(err)
	}
	if err := b.rename(engine, pl.spec.Name); err != nil {
		return nil, err
	}
	if pl.spec.Egress != "" {
		b.tunnel = p.openTunnel(b, pl.spec.Egress)
	}
	return b, p.verify(ctx, b, pl)
}

// diskFlags returns the arguments that mount the volumes. Only the loader can write to the helper's volume.
func (pl *plan) diskFlags(loader bool) (args []string, err error) {
	add := func(name string, m sandboxes.Mount) {
		m.Host = volumeName(pl.spec.Run, name)
		flag, flagErr := syntax.Mount("volume", m, pl.provider.engine.dialect().noCopyOption)
		args, err = append(args, "--mount", flag), errors.Join(err, flagErr)
	}
	add(helperVolume, sandboxes.Mount{Inside: path.Dir(helperPath), ReadOnly: !loader})
	for _, dir := range slices.Sorted(maps.Keys(pl.spec.Disk.Folders)) {
		readOnly := !loader && !pl.writableDisk && slices.Contains(pl.spec.Disk.ReadOnly, dir)
		add(folderPrefix+pl.spec.Disk.Folders[dir], sandboxes.Mount{Inside: dir, ReadOnly: readOnly})
	}
	return args, err
}

// prepareVolumes copies the helper into its volume and gives the folders to the user, with a container that does nothing else. It
// runs as root with CHOWN as its only capability, before any command of the sandbox.
func (p *Provider) prepareVolumes(ctx context.Context, pl *plan) error {
	t, loader := p.engine.dialect(), pl.name+loaderSuffix
	args := slices.Concat([]string{"create", "--name", loader}, pl.labels(), []string{
		"--pull", "never", "--network", "none", "--user", "0:0", "--read-only",
		"--cap-drop", "ALL", "--cap-add", "CHOWN", "--security-opt", "no-new-privileges",
	}, t.run)
	if pl.userns != "" {
		args = append(args, "--userns", pl.userns)
	}
	flags, err := pl.diskFlags(true)
	if err != nil {
		return err
	}
	args = slices.Concat(args, flags, []string{"--entrypoint", helperPath, p.config.Image},
		helper(inside.Own, strconv.Itoa(pl.user.uid), strconv.Itoa(pl.user.gid))[1:],
		slices.Sorted(maps.Keys(pl.spec.Disk.Folders)))
	if _, err := p.call(ctx, args...); err != nil {
		return p.explainRun(err)
	}
	read, write := io.Pipe()
	go func() { _ = write.CloseWithError(p.packHelper(write)) }()
	// Podman first writes the whole input to a temporary file, which it does not remove.
	_, err = p.program().Temp(pl.state).Input(read, loadLimit).Call(ctx, "cp", "-", loader+":"+path.Dir(helperPath))
	_ = read.CloseWithError(io.ErrClosedPipe)
	if err != nil {
		return fmt.Errorf("copy the helper into the container: %w", err)
	}
	if _, err := p.call(ctx, "start", "--attach", loader); err != nil {
		return err
	}
	_, err = p.call(ctx, append(t.remove, loader)...)
	return err
}

// packHelper writes the content of the helper's volume as a tar stream.
func (p *Provider) packHelper(to io.Writer) error {
	out := tar.NewWriter(to)
	f, err := os.Open(p.config.Helper)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name string
		mode int64
		size int64
		text io.Reader
	}{
		{path.Base(helperPath), 0o555, info.Size(), f},
		{resolvFile, 0o444, int64(len(forward.ResolvConf)), strings.NewReader(forward.ResolvConf)},
		{hostsFile, 0o444, int64(len(hostsText)), strings.NewReader(hostsText)},
	} {
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: file.name, Mode: file.mode, Size: file.size}); err != nil {
			return err
		}
		if _, err := io.CopyN(out, file.text, file.size); err != nil {
			return err
		}
	}
	return out.Close()
}

// resolveByDNS makes docker write the container's resolv.conf.
func resolveByDNS(context.Context, *plan, string) ([]string, error) {
	var args []string
	for line := range strings.Lines(forward.ResolvConf) {
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

// resolveByFile mounts files of the helper's volume: without a network podman writes no resolv.conf.
func resolveByFile(ctx context.Context, pl *plan, volume string) (args []string, err error) {
	dir, err := pl.provider.call(ctx, "volume", "inspect", "--format", "{{.Mountpoint}}", volume)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	if pl.spec.Egress != "" {
		files[resolvFile] = resolvPath
	}
	if pl.ownHosts() {
		files[hostsFile] = hostsPath
	}
	for name, inside := range files {
		flag, err := syntax.Mount("bind", sandboxes.Mount{Host: strings.TrimSpace(dir) + "/" + name, Inside: inside, ReadOnly: true}, "")
		if err != nil {
			return nil, err
		}
		args = append(args, "--mount", flag)
	}
	return args, nil
}
