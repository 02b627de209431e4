package compose

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/ralph-pool/ralph/internal/cli/screen"
)

// Build describes how the program was built.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Build returns how the program was built. Go's build information replaces values that the linker did not set.
func (a *App) Build() Build {
	b := Build{Version: a.Version, Commit: a.Commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b.Version != "" && b.Commit != "" {
		return b // reading Go's build information takes longer than the rest
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	b.Version = cmp.Or(b.Version, info.Main.Version)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && b.Commit == "" {
			b.Commit = s.Value
		}
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "development"
	}
	return b
}

// Line formats the build for people.
func (b Build) Line() string {
	of := ""
	if b.Commit != "" {
		of = "commit " + screen.ShortSHA(b.Commit) + ", "
	}
	return fmt.Sprintf("ralph %s (%s%s, %s)", b.Version, of, b.Go, b.Platform)
}
