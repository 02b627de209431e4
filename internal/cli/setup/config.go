package setup

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
)

const configLong = `Print every setting with its effective value and its source. With KEY, print only that value, a list with
one item per line. Values that may be secret are hidden.

Precedence: flags, RALPH_* variables, the repository's .ralph/config.yaml, your own file (~/.config/ralph/config.yaml),
defaults. Settings of the repository's file that act outside the sandbox, or differ from your own file, need your consent
(ralph trust); without it they are shown as if the file did not set them. Add the flag of any setting to see its effect.`

// NewConfig returns `ralph config`.
func NewConfig(a *compose.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "config [KEY]",
		Short:       "Print the settings, and where each comes from",
		Long:        configLong,
		Example:     "  ralph config\n  ralph config gate\n  RALPH_PARALLEL=8 ralph config --json parallel",
		Annotations: compose.Marks(compose.Looks),
		GroupID:     compose.GroupSetUp,
		Args:        exit.AtMostOne("KEY"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return keys.AllNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runConfig(cmd, a, args) },
	}
	a.AddJSON(cmd)
	a.Bind(cmd, 0)
	return cmd
}

func runConfig(cmd *cobra.Command, a *compose.App, args []string) error {
	var only string
	if len(args) == 1 {
		only = args[0]
		if _, ok := keys.Lookup(only); !ok {
			return exit.Usagef("unknown key %q%s", only, exit.Suggest(only, keys.AllNames(), "", "`ralph config` lists the keys"))
		}
	}
	loaded, err := a.Config(cmd)
	if err != nil {
		return err
	}
	entries := loaded.Entries()
	if i := slices.IndexFunc(entries, func(e config.Entry) bool { return e.Key == only }); i >= 0 {
		return printSetting(a, entries[i])
	}
	if a.JSON {
		return a.UI.JSON(entries)
	}
	longest, from := math.MaxInt, config.Origin.String
	if a.UI.Width() > 0 {
		longest = 60
		from = func(o config.Origin) string { return near(o.String(), a.Dir(), a.Host.Getenv("HOME")) }
	}
	rows := [][]string{{"KEY", "VALUE", "FROM"}}
	for _, e := range entries {
		rows = append(rows, []string{e.Key, showSetting(e.Value, longest), from(e.Origin)})
	}
	a.UI.Table(rows)
	return nil
}

// near shortens a path with a line number: relative to the repository, or to the home.
func near(place, dir, home string) string {
	if rest, ok := strings.CutPrefix(place, strings.TrimSuffix(dir, "/")+"/"); ok {
		return rest
	}
	if rest, ok := strings.CutPrefix(place, home+"/"); ok && home != "" {
		return "~/" + rest
	}
	return place
}

func printSetting(a *compose.App, e config.Entry) error {
	if a.JSON {
		return a.UI.JSON(e)
	}
	if items, ok := e.Value.([]string); ok {
		for _, item := range items {
			a.UI.Printf("%s\n", screen.Clean(item))
		}
		return nil
	}
	a.UI.Printf("%s\n", screen.Clean(fmt.Sprint(e.Value)))
	return nil
}

// showSetting formats a value of at most longest characters, "-" for an empty one.
func showSetting(v any, longest int) string {
	if s := config.Show(v); s != "" {
		return screen.Shorten(screen.CleanLine(s), longest)
	}
	return "-"
}
