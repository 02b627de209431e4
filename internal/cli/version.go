package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// Set by the linker (see Makefile). A build without it falls back to what Go recorded.
var version, commit string //nolint:gochecknoglobals // the linker can set nothing else

// build says what this program was built from.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildVersion() build {
	b := build{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b.Version != "" && b.Commit != "" {
		return b // reading what Go recorded takes longer than the rest
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
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

func (b build) line() string {
	of := ""
	if b.Commit != "" {
		of = "commit " + b.Commit[:min(len(b.Commit), 12)] + ", "
	}
	return fmt.Sprintf("ralph %s (%s%s, %s)", b.Version, of, b.Go, b.Platform)
}

func newVersionCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  ralph version\n  ralph version --json",
		GroupID: groupSetUp,
		Args:    exit.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.ui.JSON(buildVersion())
			}
			a.ui.Printf("%s\n", buildVersion().line())
			return nil
		},
	}
	a.addJSON(cmd)
	return cmd
}
