package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// The home that setup has filled is copied into the container's own home. Engines can mount an overlay, but cannot limit
// what is written to it, nor remove its whiteouts as an ordinary user.

// copiesHome reports whether the container's home gets a copy.
func (pl *plan) copiesHome() bool { return pl.spec.Home != "" && !pl.spec.FillHome }

// leaveHomeEmpty makes the home start empty, for the given reason.
func (pl *plan) leaveHomeEmpty(why string) { pl.spec.Home, pl.layer, pl.emptyHomeReason = "", 0, why }

// layerShare limits the copy to 1/layerShare of the memory limit, because the copy is on a tmpfs.
const layerShare = 4

// measureHome measures the copy. If that is too large, the home starts empty.
func (pl *plan) measureHome() {
	const page = 4096
	most := pl.limits.Memory / layerShare
	err := filepath.WalkDir(pl.spec.Home, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if pl.layer += (min(info.Size(), most) + page) / page * page; pl.layer > most {
			return fmt.Errorf("what setup has put there takes more than a quarter of the sandbox's memory of %d MB", pl.limits.Memory>>20)
		}
		return nil
	})
	if err != nil {
		pl.leaveHomeEmpty(err.Error())
	}
}

// prepareHome creates the mount points below the home, which the engine would create as root, and gives the home to the
// user. No command has written to it yet.
func (pl *plan) prepareHome() error {
	home, err := os.OpenRoot(pl.spec.Home)
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	for _, m := range pl.hostMounts() {
		place, below := strings.CutPrefix(m.Inside, pl.provider.config.Home+"/")
		if !below {
			continue
		}
		info, err := os.Stat(m.Host)
		if err == nil && !info.IsDir() {
			err = errors.Join(home.MkdirAll(path.Dir(place), 0o755), home.WriteFile(place, nil, 0o644))
		} else if err == nil {
			err = home.MkdirAll(place, 0o755)
		}
		if err != nil {
			return err
		}
	}
	if os.Geteuid() != 0 {
		return nil
	}
	return fs.WalkDir(home.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, home.Lchown(path, pl.user.uid, pl.user.gid))
	})
}

// HomeKey differs between images and users that cannot share a home. It is empty if files of the commands would not belong
// to the user of this process.
func (p *Provider) HomeKey(ctx context.Context) (string, error) {
	in, err := p.engineInfo(ctx)
	if err != nil {
		return "", err
	}
	img, err := p.image(ctx)
	if err != nil {
		return "", err
	}
	c := p.config
	mine := os.Geteuid() == 0 || c.User == ""
	switch u, err := parseUser(c.User); {
	case mine || err != nil:
	case in.Rootless:
		mine = p.engine.Dialect == DialectPodman || u.uid == 0
	default:
		mine = u.uid == os.Geteuid()
	}
	if !mine || c.UserNamespace != "" && c.UserNamespace != "host" {
		return "", nil
	}
	return fmt.Sprintf("%s %q %q %q %t", img.ID, c.User, c.UserNamespace, c.Home, in.Rootless), nil
}
