package container

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/describe"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/inside"
	"github.com/ralph-pool/ralph/sandboxes/container/label"
	"github.com/ralph-pool/ralph/sandboxes/egress/forward"
)

// plan describes a container before it is created. Everything is looked up, and nothing is done yet.
type plan struct {
	provider        *Provider
	spec            sandboxes.Spec
	image           describe.Image
	user            user
	userns          string
	name            string
	state           string // host folder of its own, for the files below
	workdir         string
	env             []string
	limits          sandboxes.Limits
	layer           int64    // size of a copy of the Spec's Home in bytes
	emptyHomeReason string   // the reason why the home starts empty although the Spec has one; "": it does not
	writableDisk    bool     // it may write to the Disk's read-only folders
	resolv          []string // with a Disk: arguments for name resolution
}

// box returns the box of the plan's container.
func (pl *plan) box() *box {
	b := &box{
		provider: pl.provider, run: pl.spec.Run, name: pl.name, state: pl.state, workdir: pl.workdir, env: pl.env,
		limits: pl.limits, emptyHomeReason: pl.emptyHomeReason,
	}
	if pl.spec.Disk != nil {
		for folder := range maps.Values(pl.spec.Disk.Folders) {
			b.disk = append(b.disk, volumeName(b.run, folderPrefix+folder))
		}
	}
	return b
}

// labels returns the arguments that label the run's objects in the engine.
func (pl *plan) labels() []string { return label.Args(pl.spec.Run, pl.provider.config.StateDir) }

// Names of files in a plan's state folder.
const (
	gitFile    = "git"
	resolvFile = "resolv.conf"
	hostsFile  = "hosts"
)

// plan returns a container's plan. It detects every foreseeable error before anything is created.
func (p *Provider) plan(ctx context.Context, spec sandboxes.Spec) (*plan, error) {
	if err := p.checkSpec(spec); err != nil {
		return nil, err
	}
	spec.FillHome = spec.FillHome && spec.Home != ""
	for _, m := range spec.Mounts {
		if err := p.checkMount(m); err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.Host, err)
		}
	}
	in, err := p.engineInfo(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.checkLimits(in); err != nil {
		return nil, err
	}
	img, err := p.image(ctx)
	if err != nil {
		return nil, err
	}
	u, userns, err := p.chooseUser(in, img, spec.Worktree)
	if err != nil {
		return nil, err
	}
	if !in.Rootless && userns == "" && spec.Disk == nil {
		if err := checkAccess(u, spec); err != nil {
			return nil, err
		}
	}
	name := containerName(spec.Run, strings.ToLower(rand.Text()[:8]))
	pl := &plan{
		provider: p, spec: spec, image: img, user: u, userns: userns,
		name: name, state: filepath.Join(p.config.StateDir, name),
		workdir: spec.Worktree, limits: spec.Limits,
	}
	if spec.Disk == nil { // copied files keep their path
		pl.workdir = cmp.Or(p.config.Workdir, spec.Workdir, spec.Worktree)
	}
	pl.limits = pl.limits.WithDefaults()
	if pl.copiesHome() {
		pl.measureHome()
	}
	pl.env = slices.Concat(
		[]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		img.Environment(pl.workdir), []string{"HOME=" + p.config.Home})
	if spec.Egress != "" {
		pl.env = append(pl.env, forward.Env()...)
	}
	pl.env = slices.Concat(pl.env, []string{"PWD=" + pl.workdir}, spec.Env)
	return pl, nil
}

// checkSpec returns an error for a spec that no engine can meet.
func (p *Provider) checkSpec(spec sandboxes.Spec) error {
	if err := spec.Check(); err != nil {
		return err
	}
	if spec.Name != "" && !nameFormat().MatchString(spec.Name) {
		return fmt.Errorf("%q cannot be the name of a container", spec.Name)
	}
	if spec.Disk != nil {
		if spec.GitDir+spec.Home != "" || len(spec.Objects)+len(spec.Mounts) > 0 {
			return fmt.Errorf("a sandbox with its own disk cannot show host files: %w", sandboxes.ErrUnsupported)
		}
		if p.config.Workdir != "" {
			return fmt.Errorf("working folder %q: copied files keep the path that they have outside", p.config.Workdir)
		}
		for dir := range spec.Disk.Folders {
			if err := checkInside(dir); err != nil {
				return err
			}
		}
	}
	if spec.Egress != "" {
		if p.config.Network != "none" {
			return fmt.Errorf("with network %s the egress proxy is not the only egress: %w; leave the network at its default",
				p.config.Network, sandboxes.ErrUnsupported)
		}
	}
	return nil
}

// chooseUser returns the user of commands, and the user namespace.
func (p *Provider) chooseUser(in describe.Engine, img describe.Image, worktree string) (user, string, error) {
	keepID := p.engine.Dialect == DialectPodman && in.Rootless && p.config.UserNamespace == ""
	if p.config.User != "" {
		u, err := parseUser(p.config.User)
		return u, p.userns(keepID, u), err
	}
	if keepID {
		u, ok := numericUser(img)
		if !ok || u.uid == 0 {
			u = user{1000, 1000}
		}
		return u, p.userns(true, u), nil
	}
	var st syscall.Stat_t
	if err := syscall.Stat(worktree, &st); err != nil {
		return user{}, "", fmt.Errorf("stat %s: %w", worktree, err)
	}
	u := user{int(st.Uid), int(st.Gid)}
	if in.Rootless {
		return u, "", sandboxes.Fixable(fmt.Errorf("%s runs rootless, and there uid 0 inside is you outside, unlike with podman",
			p.engine.Name), setUser(user{}))
	}
	if u.uid == 0 {
		return u, "", sandboxes.Fixable(
			fmt.Errorf("the worktree %s belongs to root, and agents do not run as root by default; run ralph as another user", worktree),
			setUser(u), sandboxes.Fix{Setting: sandboxes.SetCopy, Value: "1000:1000"})
	}
	if made, ok := numericUser(img); ok && made.uid != 0 && made.uid != u.uid {
		return u, "", sandboxes.Fixable(
			fmt.Errorf("image %s was built for uid %d, and you are uid %d", p.config.Image, made.uid, u.uid), p.buildImage(), setUser(u))
	}
	return u, p.config.UserNamespace, nil
}

// checkAccess returns an error if the user cannot write to the worktree, where ids inside are those of the host. Otherwise
// the first symptom would be a refused connection to ralph's proxy.
func checkAccess(u user, spec sandboxes.Spec) error {
	var st syscall.Stat_t
	if err := syscall.Stat(spec.Worktree, &st); err != nil {
		return fmt.Errorf("stat %s: %w", spec.Worktree, err)
	}
	owner := user{int(st.Uid), int(st.Gid)}
	group := owner.gid == u.gid && st.Mode&0o030 == 0o030 && os.Geteuid() == 0 // only root can give the proxy's socket to another user
	if u.uid == 0 || u.uid == owner.uid || group {
		return nil
	}
	fix := sandboxes.Fix{Setting: sandboxes.SetUser}
	if owner.uid == 0 {
		fix = setUser(user{})
	}
	return sandboxes.Fixable(fmt.Errorf("user %s cannot write the worktree %s, which belongs to user %s", u, spec.Worktree, owner),
		sandboxes.Fix{Setting: sandboxes.SetCopy}, fix)
}

func (p *Provider) userns(keepID bool, u user) string {
	if keepID {
		return fmt.Sprintf("keep-id:uid=%d,gid=%d", u.uid, u.gid)
	}
	return p.config.UserNamespace
}

// containerName returns a container's name. All names of a run have a common prefix.
func containerName(run, suffix string) string {
	return "ralph-" + label.ID(run) + "-" + suffix
}

func (pl *plan) makeState() error {
	if err := os.MkdirAll(filepath.Dir(pl.state), 0o700); err != nil {
		return fmt.Errorf("make the state folder: %w", err)
	}
	if err := os.Mkdir(pl.state, 0o700); err != nil {
		return fmt.Errorf("make the sandbox's state folder: %w", err)
	}
	return nil
}

// write creates the plan's own files that are shown inside.
func (pl *plan) write() error {
	if err := pl.makeState(); err != nil {
		return err
	}
	files := map[string]string{}
	if pl.spec.GitDir != "" {
		if strings.ContainsAny(pl.spec.GitDir, "\n\r") {
			return errors.New("the private repository's path has a line break in it")
		}
		files[gitFile] = "gitdir: " + pl.spec.GitDir + "\n"
	}
	if pl.spec.Egress != "" {
		files[resolvFile] = forward.ResolvConf
	}
	if pl.ownHosts() {
		files[hostsFile] = hostsText
	}
	for name, text := range files {
		path := filepath.Join(pl.state, name)
		if err := os.WriteFile(path, []byte(text), 0o444); err != nil {
			return fmt.Errorf("write a file of the sandbox: %w", err)
		}
		if os.Geteuid() != 0 {
			continue
		}
		// Git trusts a .git file only if it belongs to the current user.
		if err := os.Chown(path, pl.user.uid, pl.user.gid); err != nil {
			return fmt.Errorf("give a file of the sandbox to its user: %w", err)
		}
	}
	if pl.spec.FillHome {
		if err := pl.prepareHome(); err != nil {
			return fmt.Errorf("prepare the home: %w", err)
		}
	}
	if pl.spec.Egress != "" && os.Geteuid() == 0 {
		if err := os.Chown(pl.spec.Egress, pl.user.uid, pl.user.gid); err != nil {
			return fmt.Errorf("give the egress proxy's socket to the sandbox's user: %w", err)
		}
	}
	return nil
}

// hostMounts returns all mounts of host files, ordered so that no mount covers an earlier one.
func (pl *plan) hostMounts() []sandboxes.Mount {
	c := pl.provider.config
	all := []sandboxes.Mount{
		{Host: c.Helper, Inside: helperPath, ReadOnly: true},
		{Host: pl.spec.Worktree, Inside: pl.spec.Worktree, ReadOnly: pl.spec.ReadOnly},
	}
	switch {
	case pl.spec.FillHome:
		all = append(all, sandboxes.Mount{Host: pl.spec.Home, Inside: c.Home})
	case pl.copiesHome():
		all = append(all, sandboxes.Mount{Host: pl.spec.Home, Inside: inside.HomeLayer, ReadOnly: true})
	}
	for _, dir := range pl.spec.Objects {
		all = append(all, sandboxes.Mount{Host: dir, Inside: dir, ReadOnly: true})
	}
	if pl.spec.GitDir != "" {
		all = append(all,
			sandboxes.Mount{Host: pl.spec.GitDir, Inside: pl.spec.GitDir},
			sandboxes.Mount{Host: filepath.Join(pl.state, gitFile), Inside: path.Join(pl.spec.Worktree, ".git"), ReadOnly: true})
	}
	if pl.spec.Egress != "" {
		all = append(all,
			sandboxes.Mount{Host: pl.spec.Egress, Inside: socketPath},
			sandboxes.Mount{Host: filepath.Join(pl.state, resolvFile), Inside: resolvPath, ReadOnly: true})
	}
	if pl.ownHosts() {
		all = append(all, sandboxes.Mount{Host: filepath.Join(pl.state, hostsFile), Inside: hostsPath, ReadOnly: true})
	}
	all = append(all, pl.spec.Mounts...)
	for i, m := range all {
		if rest, ok := strings.CutPrefix(m.Inside+"/", pl.spec.Worktree+"/"); ok {
			all[i].Inside = path.Join(pl.workdir, rest)
		}
	}
	return all
}

// hostsText is the hosts file of a container without a network.
const hostsText = "127.0.0.1 localhost ralph\n::1 localhost ip6-localhost ip6-loopback\n"

// ownHosts reports whether the container gets ralph's hosts file instead of the engine's, which describes this host. It
// does not if Args add names, which is possible only with the engine's file.
func (pl *plan) ownHosts() bool {
	c := pl.provider.config
	adds := slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "--add-host") })
	mounted := slices.ContainsFunc(pl.spec.Mounts, func(m sandboxes.Mount) bool { return m.Inside == hostsPath })
	return pl.provider.engine.dialect().hosts && c.Network == "none" && !adds && !mounted
}
