package cli

import (
	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// version and commit are set by the linker (see Makefile). Without it, Go's build information is used.
var version, commit string //nolint:gochecknoglobals // the linker can set nothing else

func newVersionCommand(a *compose.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  ralph version\n  ralph version --json",
		GroupID: compose.GroupSetUp,
		Args:    exit.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.JSON {
				return a.UI.JSON(a.Build())
			}
			a.UI.Printf("%s\n", a.Build().Line())
			return nil
		},
	}
	a.AddJSON(cmd)
	return cmd
}
