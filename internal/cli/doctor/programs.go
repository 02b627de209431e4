package doctor

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/internal/cli/work"
	"github.com/ralph-pool/ralph/internal/reach"
	"github.com/ralph-pool/ralph/internal/toolchain"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/git"
)

// programs checks the scripts of the repository that commands start with: a worktree only has files that are committed, copied, or
// made by setup.
func (d *doctor) programs(ctx context.Context, p *compose.Parts, what string, commands []string) {
	base, err := p.Repo.Base(ctx, p.Base)
	if err != nil {
		return // the check of the base reports it
	}
	for _, command := range commands {
		script := scriptOf(command)
		if script == "" || slices.Contains(p.Copy, script) {
			continue
		}
		there, err := p.Repo.HasPath(ctx, base.Commit, script)
		_, missing := os.Stat(filepath.Join(p.Top, script))
		switch {
		case err != nil:
			d.warn(what, err.Error(), "")
		case there || what != "setup" && namedIn(p.Setup, script):
		case missing == nil:
			d.warn(what, fmt.Sprintf("%s is not committed on %s, so it is missing in worktrees", script, base.Name),
				fmt.Sprintf("%s && git commit, or copy: %s in .ralph/config.yaml and ralph trust",
					report.GitCommand("add", script), keys.YAML([]string{script})))
		case what != "setup" && len(p.Setup) > 0: // setup may make it
		default:
			d.warn(what, fmt.Sprintf("%s does not exist", script), "correct the command, or commit the file")
		}
	}
}

// tools checks that the programs of setup and gate exist. It cannot look into an image.
func (d *doctor) tools(p *compose.Parts) {
	provider, err := d.app.SandboxRegistry(p).Lookup(p.SandboxName())
	if err == nil && p.Image == "" && provider.Capabilities().Isolated() && !compose.ShowsHost(provider) { // it is ralph's own
		file := filepath.Join(scaffold.Dir, scaffold.ImageFile(p.SandboxName()))
		if wanted, has := toolchain.OldNode(p.Top, filepath.Join(p.Top, file)); wanted != "" {
			d.warn("tools", fmt.Sprintf("package.json wants Node.js %s, and the image of %s has %d", wanted, file, has),
				"name a newer image after FROM there, and: ralph image build")
		}
	}
	if err != nil || provider.Capabilities().Isolated() && !compose.ShowsHost(provider) {
		return
	}
	lines := slices.Concat(p.Setup, p.Gate)
	for _, program := range toolchain.Programs(lines) {
		if d.app.LookPath(program) != "" {
			continue
		}
		severity := tracker.Fail
		if len(p.Setup) > 0 { // setup may install it
			severity = tracker.Warn
		}
		d.add("tools", severity, program+" is not in PATH, but setup or gate needs it", "install it, or correct the command")
	}
	if !compose.ShowsHost(provider) {
		return
	}
	if hidden := d.app.HiddenTools(p.Config, lines); len(hidden) > 0 {
		d.warn("tools", "the sandbox does not show the folders of programs that setup or gate needs",
			"sandbox-show: "+keys.YAML(hidden)+" in your configuration")
	}
}

// sources checks that runs may reach the hosts from which the project's tools fetch.
func (d *doctor) sources(ctx context.Context, p *compose.Parts) {
	proposals, err := toolchain.Propose(p.Top)
	network, bad := d.app.Network(p.Config)
	provider, unknown := d.app.SandboxRegistry(p).Lookup(p.SandboxName())
	if err != nil || bad != nil || unknown != nil || len(p.Setup) == 0 || !provider.Capabilities().Egress && !provider.Capabilities().OwnEgress {
		return
	}
	asked := map[string]bool{} // several folders may use the same tool
	for _, proposal := range proposals {
		if len(proposal.Setup) == 0 || asked[proposal.Tool] {
			continue
		}
		asked[proposal.Tool] = true
		for _, address := range proposal.Source(ctx, d.app.Host.Env).Hosts {
			host, port := address, 443
			if r, err := egress.ParseRule(address); err == nil && len(r.Ports) > 0 {
				host, port = r.Host, r.Ports[0]
			}
			private := reach.PrivateHost(ctx, address)
			allowed := slices.ContainsFunc(network.Allow, func(r egress.Rule) bool { return r.Allows(host, port) && (r.AllowPrivate || !private) })
			key := map[bool]string{false: "allow", true: "allow-private"}[private]
			fix := "--" + key + " " + address + ", or " + key + ": [" + address + "] in your configuration"
			if u := d.app.Untrusted; u != nil && slices.Contains(u.Keys, key) { // the value may be there already
				fix = u.Command + ", if the repository's " + key + " has the host; else " + fix
			}
			if !allowed {
				d.warn("network", proposal.Tool+" fetches from "+address+", which runs may not reach", fix)
			}
		}
	}
}

// locks warns of a missing lock file that every run creates again, and that an agent may commit with its work.
func (d *doctor) locks(ctx context.Context, p *compose.Parts) {
	proposals, err := toolchain.Propose(p.Top)
	if err != nil || len(p.Setup)+len(p.Gate) == 0 {
		return
	}
	g := git.New(p.Top).With("GIT_LITERAL_PATHSPECS=0") // check-ignore refuses literal pathspecs
	for _, proposal := range proposals {
		if proposal.Unlocked == "" {
			continue
		}
		if ignored, err := g.Test(ctx, "check-ignore", "--quiet", "--", "./"+proposal.Unlocked); err != nil || ignored {
			continue
		}
		d.warn("locks", "no "+proposal.Unlocked+": each setup or gate creates one, and the agent may commit it",
			proposal.MakeLock+", and commit it; or add it to .gitignore")
	}
}

// submodules warns if submodules will be empty: a worktree only has the repository's own files.
func (d *doctor) submodules(ctx context.Context, p *compose.Parts) {
	switch there, brought, err := work.Submodules(ctx, p); {
	case err != nil:
		d.warn("submodules", err.Error(), "")
	case !there:
	case brought:
		d.ok("submodules", "setup or before fetches them")
	default:
		d.warn("submodules", hint.EmptySubmodules, hint.SubmodulesFix)
	}
}

// namedIn reports whether a line of setup names the script's top folder, such as .venv. Then setup makes it.
func namedIn(setup []string, script string) bool {
	folder, _, below := strings.Cut(script, "/")
	edge := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("/;&", r) }
	return below && slices.ContainsFunc(setup, func(line string) bool { return slices.Contains(strings.FieldsFunc(line, edge), folder) })
}

// scriptOf returns the repository's file that a command line runs, judged by its first words, or "".
func scriptOf(command string) string {
	words := strings.Fields(command)
	if len(words) > 1 && slices.Contains([]string{"sh", "bash"}, words[0]) && !strings.HasPrefix(words[1], "-") {
		words = words[1:]
	} else if len(words) == 0 || !strings.Contains(words[0], "/") {
		return ""
	}
	if strings.ContainsAny(words[0], "$`'\"*?~;&|<>()") || path.IsAbs(words[0]) || !filepath.IsLocal(path.Clean(words[0])) {
		return ""
	}
	return path.Clean(words[0])
}
