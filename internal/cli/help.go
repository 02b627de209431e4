package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/screen"
)

// fewKeys is how many configuration flags a command's help shows; --help-all shows all.
const fewKeys = 8

// mostUsed lists configuration keys by how often people type them as flags, most often first.
func mostUsed() []string {
	return []string{
		"poll", "label", "parallel", "limit", "agent", "model", "sandbox", "gate", "publish", "prompt-file", "max-iterations", "base",
		"allow", "setup", "tracker", "image",
	}
}

// allHelp is the flag value of --help-all.
type allHelp struct{ app *compose.App }

// Set implements pflag.Value. Its error stops the parsing of the command line, because only the help is wanted.
func (h allHelp) Set(string) error { h.app.HelpAll = true; return pflag.ErrHelp }

// String implements pflag.Value.
func (allHelp) String() string { return "" }

// Type implements pflag.Value.
func (allHelp) Type() string { return "bool" }

// help returns a command's help, wrapped at the terminal's width.
func help(a *compose.App, cmd *cobra.Command) string {
	var b strings.Builder
	width := a.UI.HelpWidth()
	b.WriteString(screen.Wrap(cmp.Or(cmd.Long, cmd.Short), width) + "\n\nUsage:\n")
	use := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		use = cmd.CommandPath() + " [command]"
	}
	b.WriteString("  " + use + "\n")
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n" + cmd.Example + "\n")
	}
	helpCommands(&b, cmd, width)
	helpFlags(a, &b, cmd, width)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n`%s COMMAND --help` explains a command.\n", cmd.CommandPath())
	}
	if !cmd.HasParent() || cmd.Annotations[compose.Sweeps] != "" {
		b.WriteString("\n" + screen.Wrap(exitHelp, width) + "\n")
	}
	return b.String()
}

// helped returns the command to explain: cmd, or the one named after help.
func helped(cmd *cobra.Command, args []string) *cobra.Command {
	if cmd.Name() != "help" {
		return cmd
	}
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "help" || strings.HasPrefix(arg, "-") })
	if target, _, err := cmd.Root().Find(args); err == nil {
		return target
	}
	return cmd
}

// helpCommands lists the subcommands of a command by group.
func helpCommands(b *strings.Builder, cmd *cobra.Command, width int) {
	groups := append([]*cobra.Group{{Title: "Commands:"}}, cmd.Groups()...)
	for _, g := range groups {
		var rows [][2]string
		for _, c := range cmd.Commands() {
			if c.GroupID == g.ID && (c.IsAvailableCommand() || c.Name() == "help") {
				rows = append(rows, [2]string{c.Name(), c.Short})
			}
		}
		section(b, g.Title, rows, width)
	}
}

// helpFlags lists a command's flags: its own and the most used keys, or with --help-all all of them by group.
func helpFlags(a *compose.App, b *strings.Builder, cmd *cobra.Command, width int) {
	var own []*pflag.Flag
	group := map[string][]*pflag.Flag{}
	var titles []string
	for _, k := range keys.All() {
		if !slices.Contains(titles, k.Group) {
			titles = append(titles, k.Group)
		}
	}
	visit := func(f *pflag.Flag) {
		if f.Hidden || cmd.Root().PersistentFlags().Lookup(f.Name) == f {
			return
		}
		own = append(own, f)
		key, _ := config.OfFlag(f)
		group[key.Group] = append(group[key.Group], f)
	}
	cmd.LocalFlags().VisitAll(visit)
	cmd.InheritedFlags().VisitAll(visit) // flags of the parent command
	few := len(own)-len(group[""]) <= fewKeys+2
	switch {
	case few:
		section(b, "Flags:", flagRows(own), width)
	case a.HelpAll:
		section(b, "Flags:", flagRows(group[""]), width)
		for _, title := range titles {
			section(b, title+":", flagRows(group[title]), width)
		}
	default:
		common, most := slices.Clone(group[""]), len(group[""])+fewKeys
		for _, name := range mostUsed() {
			i := slices.IndexFunc(own, func(f *pflag.Flag) bool { return f.Name == name })
			if i >= 0 && len(common) < most && !slices.Contains(common, own[i]) { // a command's own flag may have the name of a key
				common = append(common, own[i])
			}
		}
		section(b, "Common flags:", flagRows(common), width)
		fmt.Fprintf(b, "\n`%s --help-all` lists %d more flags.\n", cmd.CommandPath(), len(own)-len(common))
	}
	var global []*pflag.Flag
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help-all" || !few || !cmd.HasParent() { // it would show nothing more
			global = append(global, f)
		}
	})
	section(b, "Global flags:", flagRows(global), width)
}

// flagRows returns a row of two columns for each flag.
func flagRows(flags []*pflag.Flag) (rows [][2]string) {
	for _, f := range flags {
		name, usage := pflag.UnquoteUsage(f)
		label := "    --" + f.Name
		if f.Shorthand != "" {
			label = "-" + f.Shorthand + ", --" + f.Name
		}
		if name != "" && f.Value.Type() != "bool" {
			label += " " + name
		}
		if zero := f.DefValue == "" || f.DefValue == "false" || f.DefValue == "0" || f.DefValue == "[]"; !zero {
			usage += " (default " + f.DefValue + ")"
		}
		rows = append(rows, [2]string{label, usage})
	}
	return rows
}

// section prints a heading and rows of two columns. If the first cell is too wide, the second goes onto the next line.
func section(b *strings.Builder, title string, rows [][2]string, width int) {
	if len(rows) == 0 {
		return
	}
	left := 0
	for _, row := range rows {
		left = max(left, min(utf8.RuneCountInString(row[0]), width/3))
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, row := range rows {
		first := fmt.Sprintf("  %-*s  ", left, row[0])
		if utf8.RuneCountInString(row[0]) > left {
			b.WriteString(strings.TrimRight(first, " ") + "\n")
			first = strings.Repeat(" ", left+4)
		}
		b.WriteString(screen.WrapLine(first+row[1], left+4, width) + "\n")
	}
}
