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

// The home that setup has filled is copied into the container's own: engines can mount an overlay, but neither bound what is
// written to it, nor remove whiteouts for an ordinary user.

// warm reports that the container's home gets a copy.
func (pl *plan) warm() bool { return pl.spec.Home != "" && !pl.spec.FillHome }

// leaveHomeEmpty leaves the home empty.
func (pl *plan) leaveHomeEmpty(why string) { pl.spec.Home, pl.layer, pl.cold = "", 0, why }

// layerShare is the part of the memory that the copy may take: it is on a tmpfs.
const layerShare = 4

// measureHome finds how large the copy is, and whether it may be made.
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

// prepareHome makes the places of mounts below the home, which the engine would make as root, and gives the home to the user.
// Nobody has written to it yet.
func (pl *plan) prepareHome() error {
	home, err := os.OpenRoot(pl.spec.Home)
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	for _, m := range pl.shown() {
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

// HomeKey differs between images and users that cannot share a home. It is empty where files of the commands would not belong
// to the user of this process.
func (p *Provider) HomeKey(ctx context.Context) (string, error) {
	in, err := p.ask(ctx)
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
