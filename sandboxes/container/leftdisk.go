package container

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes/container/label"
)

// LeftDisk describes a leftover disk of a run's sandbox.
type LeftDisk struct {
	Volumes string // pattern for the names of its volumes
	Show    string // command line that shows their files
	Unsaved bool   // they may contain work that was not imported
}

// AbandonedDisks returns the disks of this StateDir whose ralph process on this host has exited, by run.
func (p *Provider) AbandonedDisks(ctx context.Context) (map[string]LeftDisk, error) {
	names, err := p.listVolumes(ctx, label.OfState(p.config.StateDir))
	marked, err := p.abandoned(ctx, names, err, "volume", "{{json .Labels}}")
	disks := map[string]LeftDisk{}
	for _, run := range marked {
		all, errAll := p.volumes(ctx, run)
		err = errors.Join(err, errAll)
		disks[run] = LeftDisk{volumeName(run, "*"), p.shellCommand(run, all), slices.Contains(all, volumeName(run, filledVolume))}
	}
	return disks, err
}

// shellCommand returns the command line of a shell in a container with the run's volumes.
func (p *Provider) shellCommand(run string, volumes []string) string {
	args := []string{"run", "--rm", "-it", "--network", "none", "-u", "0:0", "-w", "/disk", "--entrypoint", "sh"}
	for _, v := range slices.Compact(slices.Sorted(slices.Values(volumes))) { // two paths may show the same volume
		if folder, ok := strings.CutPrefix(v, volumeName(run, folderPrefix)); ok {
			args = append(args, "-v", v+":/disk/"+folder)
		}
	}
	return strings.Join(p.program().Argv(append(args, p.config.Image)...), " ")
}

// volumes lists the run's volumes.
func (p *Provider) volumes(ctx context.Context, run string) ([]string, error) {
	prefix := volumeName(run, "")
	names, err := p.listVolumes(ctx, "name="+prefix)
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) }), err
}

func (p *Provider) listVolumes(ctx context.Context, filter string) ([]string, error) {
	for range endRounds { // podman fails if another volume is removed meanwhile
		out, err := p.call(ctx, "volume", "ls", "--quiet", "--filter", filter)
		if err == nil || !strings.Contains(err.Error(), "no such volume") {
			return strings.Fields(out), err
		}
	}
	return nil, errors.New("the engine's list of volumes fails because others remove volumes all the time")
}

// RemoveDisk removes the run's volumes, first the one that marks them as filled, in case ralph is killed meanwhile.
func (p *Provider) RemoveDisk(ctx context.Context, run string) error {
	names, err := p.volumes(ctx, run)
	if err != nil || len(names) == 0 {
		return err
	}
	if i := slices.Index(names, volumeName(run, filledVolume)); i > 0 {
		names[0], names[i] = names[i], names[0]
	}
	_, err = p.call(ctx, append([]string{"volume", "rm", "--force"}, names...)...)
	return err
}
