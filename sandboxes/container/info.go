package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
)

// info is what matters of an engine's own description.
type info struct {
	rootless bool
	lacking  []string // limits that it cannot enforce
}

// ask asks the engine about itself, once it has answered never again.
func (p *Provider) ask(ctx context.Context) (info, error) {
	p.mu.Lock()
	known := p.known
	p.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	text, err := p.call(ctx, p.engine.tongue().info...)
	if err != nil {
		return info{}, p.explain(ctx, err)
	}
	in, err := readInfo(p.engine.Dialect, []byte(text))
	if err != nil {
		return info{}, fmt.Errorf("read what %s says about itself: %w", p.engine.Name, err)
	}
	p.mu.Lock()
	p.known = &in
	p.mu.Unlock()
	return in, nil
}

// readInfo decodes what "info" prints.
func readInfo(d Dialect, text []byte) (info, error) {
	if d == DialectPodman {
		return readPodmanInfo(text)
	}
	var v struct {
		ServerErrors    []string
		SecurityOptions []string
		MemoryLimit     bool
		PidsLimit       bool
		CPUCfsQuota     bool `json:"CpuCfsQuota"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return info{}, err
	}
	if len(v.ServerErrors) > 0 {
		return info{}, errors.New(firstLine(v.ServerErrors[0]))
	}
	in := info{rootless: slices.Contains(v.SecurityOptions, "name=rootless")}
	for _, limit := range []struct {
		name string
		has  bool
	}{{"memory", v.MemoryLimit}, {"pids", v.PidsLimit}, {"cpu", v.CPUCfsQuota}} {
		if !limit.has {
			in.lacking = append(in.lacking, limit.name)
		}
	}
	return in, nil
}

func readPodmanInfo(text []byte) (info, error) {
	var v struct {
		Host struct {
			CgroupControllers []string `json:"cgroupControllers"`
			CgroupVersion     string   `json:"cgroupVersion"`
			Security          struct {
				Rootless bool `json:"rootless"`
			} `json:"security"`
		} `json:"host"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return info{}, err
	}
	in := info{rootless: v.Host.Security.Rootless}
	if !in.rootless { // root has every controller that the kernel has
		return in, nil
	}
	for _, name := range []string{"memory", "pids", "cpu"} {
		if v.Host.CgroupVersion != "v2" || !slices.Contains(v.Host.CgroupControllers, name) {
			in.lacking = append(in.lacking, name)
		}
	}
	return in, nil
}

// boundable refuses an engine that would ignore limits.
func (p *Provider) boundable(in info) error {
	if len(in.lacking) == 0 || p.config.Unbounded {
		return nil
	}
	return fmt.Errorf("%s cannot bound %s here: %w; delegate these cgroup controllers to your user "+
		"(systemd: Delegate=yes on cgroup v2), or accept it: --container-unbounded",
		p.engine.Name, strings.Join(in.lacking, ", "), sandboxes.ErrUnsupported)
}

// image is what matters of an image.
type image struct {
	id   string
	user string
	env  []string
}

// image looks at the configured image.
func (p *Provider) image(ctx context.Context) (image, error) {
	text, err := p.call(ctx, "image", "inspect", p.config.Image)
	if err != nil {
		return image{}, p.explainImage(ctx, err)
	}
	img, err := readImage([]byte(text))
	if err != nil {
		return image{}, fmt.Errorf("read what %s says about image %s: %w", p.engine.Name, p.config.Image, err)
	}
	return img, nil
}

// readImage decodes what "image inspect" prints for one image.
func readImage(text []byte) (image, error) {
	var v []struct {
		ID     string `json:"Id"`
		Config struct {
			User string
			Env  []string
		}
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return image{}, err
	}
	if len(v) != 1 || v[0].ID == "" {
		return image{}, fmt.Errorf("%d images instead of one", len(v))
	}
	return image{id: v[0].ID, user: v[0].Config.User, env: v[0].Config.Env}, nil
}

// numericUser is the image's user when it is numeric: a name means what the image's own files say.
func (i image) numericUser() (user, bool) {
	if i.user == "" {
		return user{}, false
	}
	u, err := parseUser(i.user)
	return u, err == nil
}

// parseUser reads "UID" or "UID:GID"; without a group it is the user's number.
func parseUser(text string) (user, error) {
	left, right, both := strings.Cut(text, ":")
	if !both {
		right = left
	}
	uid, err := strconv.ParseUint(left, 10, 31)
	gid, err2 := strconv.ParseUint(right, 10, 31)
	if err != nil || err2 != nil {
		return user{}, fmt.Errorf("--container-user %q is not UID:GID, in numbers", text)
	}
	return user{uid: int(uid), gid: int(gid)}, nil
}
