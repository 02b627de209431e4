package container

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// Labels of containers.
const (
	labelRun   = "ralph.run"
	labelOwner = "ralph.owner"
)

// plan is a container that is about to be made: all that was looked up, and nothing done yet.
type plan struct {
	provider *Provider
	spec     sandboxes.Spec
	image    image
	user     user
	userns   string
	mounts   []sandboxes.Mount
	name     string
	state    string // a host folder of its own, for the files below
	workdir  string
	env      []string
	limits   sandboxes.Limits
	resolv   []string // where files are copied: the arguments that make names lead to the egress proxy
}

// box is the container that the plan makes.
func (pl *plan) box() *box {
	return &box{
		provider: pl.provider, name: pl.name, state: pl.state, workdir: pl.workdir, env: pl.env, memory: pl.limits.Memory,
		running: make(map[*execution]struct{}),
	}
}

// Names of files in a plan's state folder.
const (
	gitFile    = "git"
	resolvFile = "resolv.conf"
)

// plan looks up everything that can be wrong before something is made.
func (p *Provider) plan(ctx context.Context, spec sandboxes.Spec) (*plan, error) {
	if err := p.checkSpec(spec); err != nil {
		return nil, err
	}
	mounts, err := p.userMounts(spec.Mounts)
	if err != nil {
		return nil, err
	}
	if err := p.copyable(spec, mounts); err != nil {
		return nil, err
	}
	in, err := p.ask(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.boundable(in); err != nil {
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
	name := containerName(spec.Run, strings.ToLower(rand.Text()[:8]))
	pl := &plan{
		provider: p, spec: spec, image: img, user: u, userns: userns, mounts: mounts,
		name: name, state: filepath.Join(p.config.StateDir, name),
		workdir: spec.Worktree, limits: spec.Limits,
	}
	if p.config.Workdir != "" {
		pl.workdir = p.config.Workdir
	}
	pl.limits = withDefaults(pl.limits)
	pl.env = slices.Concat(
		[]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		img.env, []string{"HOME=" + p.config.Home}, p.config.Env)
	if spec.Egress != "" {
		pl.env = append(pl.env, egress.Env()...)
	}
	pl.env = slices.Concat(pl.env, []string{"PWD=" + pl.workdir}, spec.Env)
	return pl, nil
}

// checkSpec refuses what no engine could make.
func (p *Provider) checkSpec(spec sandboxes.Spec) error {
	if spec.Run == "" || strings.ContainsAny(spec.Run, "\n\x00") {
		return fmt.Errorf("the run's id %q is none", spec.Run)
	}
	folders := slices.Concat([]string{spec.Worktree}, spec.Objects)
	if spec.GitDir != "" {
		folders = append(folders, spec.GitDir)
	}
	for _, dir := range folders {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
			return fmt.Errorf("%q is not a clean absolute path", dir)
		}
		if info, err := os.Stat(dir); err != nil {
			return err
		} else if !info.IsDir() {
			return fmt.Errorf("%s is not a folder", dir)
		}
	}
	if spec.GitDir != "" {
		git := filepath.Join(spec.Worktree, ".git")
		if info, err := os.Lstat(git); err != nil {
			return err
		} else if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a file: the worktree is not a linked one", git)
		}
	}
	if spec.Egress != "" {
		if p.config.Network != "none" {
			return fmt.Errorf("with network %s the egress proxy is not the only way out: %w; leave the network at its default",
				p.config.Network, sandboxes.ErrUnsupported)
		}
		if info, err := os.Stat(spec.Egress); err != nil {
			return err
		} else if info.Mode()&os.ModeSocket == 0 {
			return fmt.Errorf("%s is not a socket", spec.Egress)
		}
	}
	return nil
}

// chooseUser decides who commands run as.
func (p *Provider) chooseUser(in info, img image, worktree string) (user, string, error) {
	keepID := p.engine.Dialect == DialectPodman && in.rootless && p.config.UserNamespace == ""
	if p.config.User != "" {
		u, err := parseUser(p.config.User)
		return u, p.userns(keepID, u), err
	}
	if keepID {
		u, ok := img.numericUser()
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
	if in.rootless {
		return u, "", fmt.Errorf("%s runs rootless, and there uid 0 inside is you outside: allow it with --container-user 0:0, or use podman",
			p.engine.Name)
	}
	if u.uid == 0 {
		return u, "", fmt.Errorf("the worktree %s is root's, and an agent does not run as root unasked: "+
			"run ralph as another user, or allow it with --container-user 0:0", worktree)
	}
	if made, ok := img.numericUser(); ok && made.uid != 0 && made.uid != u.uid {
		return u, "", fmt.Errorf("image %s was built for uid %d, and you are uid %d: rebuild it with: "+
			"ralph image build --engine %s, or allow that user with --container-user %d:%d",
			p.config.Image, made.uid, u.uid, p.engine.Name, made.uid, made.gid)
	}
	return u, p.config.UserNamespace, nil
}

func (p *Provider) userns(keepID bool, u user) string {
	if keepID {
		return fmt.Sprintf("keep-id:uid=%d,gid=%d", u.uid, u.gid)
	}
	return p.config.UserNamespace
}

// containerName is unique for one sandbox and begins the same for one run.
func containerName(run, suffix string) string {
	sum := sha256.Sum256([]byte(run))
	return "ralph-" + hex.EncodeToString(sum[:6]) + "-" + suffix
}

func withDefaults(l sandboxes.Limits) sandboxes.Limits {
	if l.Memory <= 0 {
		l.Memory = 4 << 30
	}
	if l.CPUs <= 0 {
		l.CPUs = 2
	}
	if l.PIDs <= 0 {
		l.PIDs = 1024
	}
	if l.Disk <= 0 {
		l.Disk = 2 << 30
	}
	return l
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

// write makes the files that are shown inside.
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
		files[resolvFile] = egress.ResolvConf
	}
	for name, text := range files {
		path := filepath.Join(pl.state, name)
		if err := os.WriteFile(path, []byte(text), 0o444); err != nil {
			return fmt.Errorf("write a file of the sandbox: %w", err)
		}
		if os.Geteuid() != 0 {
			continue
		}
		// Git trusts only a .git file of its own user.
		if err := os.Chown(path, pl.user.uid, pl.user.gid); err != nil {
			return fmt.Errorf("give a file of the sandbox to its user: %w", err)
		}
	}
	return nil
}

// shown lists all that the container sees of the host, in an order in which nothing covers what came before.
func (pl *plan) shown() []sandboxes.Mount {
	c := pl.provider.config
	all := []sandboxes.Mount{
		{Host: c.Helper.Path, Inside: helperPath, ReadOnly: true},
		{Host: pl.spec.Worktree, Inside: pl.spec.Worktree},
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
	return append(all, pl.mounts...)
}
