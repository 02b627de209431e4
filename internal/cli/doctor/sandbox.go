package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/cli/work"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

func (d *doctor) sandboxes(ctx context.Context, p *compose.Parts) {
	reg := d.app.SandboxRegistry(p)
	chosenName := p.SandboxName()
	provider, err := reg.Lookup(chosenName)
	var has *bool
	if err == nil {
		has, err = work.Preflight(ctx, d.app, p, provider, d.inside)
	}
	d.inSandbox(p, has)
	switch {
	case err != nil:
		d.fail("sandbox", hint.SandboxLine(chosenName, err), "follow the message, or choose another sandbox with --sandbox: "+
			"`ralph sandbox check` lists them")
	case !provider.Capabilities().Isolated():
		d.warn("sandbox", chosenName+": works, but isolates nothing", "--sandbox "+compose.StrongerThan(chosenName))
	case provider.Capabilities().Weaker != "":
		d.warn("sandbox", chosenName+": works, but is weaker than others: "+provider.Capabilities().Weaker,
			"--sandbox "+compose.StrongerThan(chosenName)+", if one works here")
	default:
		d.ok("sandbox", chosenName+": works; `ralph sandbox check` attacks it")
	}
	if err == nil && provider.Capabilities().Isolated() {
		d.worktrees(ctx, p, provider)
	}
	if c, ok := sandboxes.As[*container.Provider](provider); ok && err == nil {
		d.containers(ctx, c)
	}
	if s, ok := provider.(*sbx.Provider); ok && err == nil {
		d.sbxLogin(ctx, s, d.app.About(p.Agent).Sbx)
	}
}

// containers reports containers that killed ralph processes or container-keep have left.
func (d *doctor) containers(ctx context.Context, c *container.Provider) {
	left, err := c.Abandoned(ctx)
	switch {
	case err != nil:
		d.warn("containers", err.Error(), "")
	case len(left) > 0:
		first := slices.Min(slices.Collect(maps.Keys(left)))
		d.warn("containers", fmt.Sprintf("%s, such as %s", screen.Plural(len(left), "unused container"), first),
			"ralph clean")
	}
	d.volumes(ctx, c)
}

// volumes reports volumes of ended runs.
func (d *doctor) volumes(ctx context.Context, c *container.Provider) {
	left, err := c.AbandonedDisks(ctx)
	saved := ""
	for _, disk := range left {
		if disk.Unsaved {
			saved = "; some may have work that is not imported"
		}
	}
	switch {
	case err != nil:
		d.warn("volumes", err.Error(), "")
	case len(left) > 0:
		first := left[slices.Min(slices.Collect(maps.Keys(left)))].Volumes
		d.warn("volumes", fmt.Sprintf("unused, of %s, such as %s%s", screen.Plural(len(left), "run"), first, saved), "ralph clean")
	}
}

// worktrees reports how a run's files are made.
func (d *doctor) worktrees(ctx context.Context, p *compose.Parts, provider sandboxes.Provider) {
	layers, ok := sandboxes.As[sandboxes.Layerer](provider)
	why := fmt.Errorf("sandbox %s does not share checkouts", provider.Name())
	switch {
	case ok && p.LayerMaxMB == 0:
		why = errors.New("layer-max-mb is 0")
	case ok:
		why = layers.Layers(ctx, p.Repo.Temp())
	}
	if why != nil {
		d.ok("worktrees", "each is a separate checkout: "+strings.ReplaceAll(why.Error(), "\n", "; "))
		return
	}
	d.ok("worktrees", "with 2,000 files or more, overlays on a shared checkout of the base (overlayfs)")
}
