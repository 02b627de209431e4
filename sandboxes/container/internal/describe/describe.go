// Package describe decodes a container engine's description of itself and of images. Package container uses it. It has no
// state.
package describe

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Engine describes an engine.
type Engine struct {
	Rootless bool
	Lacking  []string // limits that it cannot enforce
}

// Docker decodes the output of "docker info".
func Docker(text []byte) (Engine, error) {
	var v struct {
		ServerErrors    []string
		SecurityOptions []string
		MemoryLimit     bool
		PidsLimit       bool
		CPUCfsQuota     bool `json:"CpuCfsQuota"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return Engine{}, err
	}
	if len(v.ServerErrors) > 0 {
		first, _, _ := strings.Cut(strings.TrimSpace(v.ServerErrors[0]), "\n")
		return Engine{}, errors.New(first)
	}
	e := Engine{Rootless: slices.Contains(v.SecurityOptions, "name=rootless")}
	for _, limit := range []struct {
		name string
		has  bool
	}{{"memory", v.MemoryLimit}, {"pids", v.PidsLimit}, {"cpu", v.CPUCfsQuota}} {
		if !limit.has {
			e.Lacking = append(e.Lacking, limit.name)
		}
	}
	return e, nil
}

// Podman decodes the output of "podman info".
func Podman(text []byte) (Engine, error) {
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
		return Engine{}, err
	}
	e := Engine{Rootless: v.Host.Security.Rootless}
	if !e.Rootless { // root has all controllers of the kernel
		return e, nil
	}
	for _, name := range []string{"memory", "pids", "cpu"} {
		if v.Host.CgroupVersion != "v2" || !slices.Contains(v.Host.CgroupControllers, name) {
			e.Lacking = append(e.Lacking, name)
		}
	}
	return e, nil
}

// Image describes an image.
type Image struct {
	ID   string
	User string
	Env  []string
}

// OneImage decodes the output of "image inspect" for one image.
func OneImage(text []byte) (Image, error) {
	var v []struct {
		ID     string `json:"Id"`
		Config struct {
			User string
			Env  []string
		}
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return Image{}, err
	}
	if len(v) != 1 || v[0].ID == "" {
		return Image{}, fmt.Errorf("%d images instead of one", len(v))
	}
	return Image{ID: v[0].ID, User: v[0].Config.User, Env: v[0].Config.Env}, nil
}

// Environment returns the image's environment without variables that make programs load other code. From PATH and
// LD_LIBRARY_PATH it removes relative folders, and those to which a run can write: a run's files must not precede the tools
// that check it.
func (i Image) Environment(workdir string) (env []string) {
	written := func(dir string) bool {
		dir = path.Clean(dir) + "/"
		return strings.HasPrefix(dir, strings.TrimSuffix(workdir, "/")+"/") || strings.HasPrefix(dir, "/tmp/")
	}
	for _, entry := range i.Env {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case "LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "GCONV_PATH", "BASH_ENV", "PROMPT_COMMAND", "PYTHONSTARTUP",
			"GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM":
			continue
		case "PATH", "LD_LIBRARY_PATH":
			var dirs []string
			for dir := range strings.SplitSeq(value, ":") {
				if path.IsAbs(dir) && !written(dir) {
					dirs = append(dirs, dir)
				}
			}
			if len(dirs) == 0 {
				continue
			}
			entry = name + "=" + strings.Join(dirs, ":")
		}
		env = append(env, entry)
	}
	return env
}
