package cli

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/tracker"
)

// bind registers the flags of keys, as config.Bind does, with completion of their values.
func (a *app) bind(cmd *cobra.Command, uses config.Use, names ...string) {
	for _, k := range config.Bind(cmd.Flags(), uses, names...) {
		complete := cobra.NoFileCompletions
		switch {
		case k.Kind == config.Path:
			continue // the shell's own
		case k.Registered:
			choices := a.choices()[k.Name]
			complete = cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)
			cmd.Flags().Lookup(k.Flag()).Usage += " (" + strings.Join(choices, ", ") + ")"
		case len(k.Choices) > 0:
			complete = cobra.FixedCompletions(k.Choices, cobra.ShellCompDirectiveNoFileComp)
		}
		_ = cmd.RegisterFlagCompletionFunc(k.Flag(), complete)
	}
}

// refineCompletion makes cobra's own command refuse a shell it does not know; left alone it prints its help.
func refineCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd("completion")
	completion, _, err := root.Find([]string{"completion"})
	if err != nil || completion == root {
		return
	}
	completion.Long = strings.TrimSpace(completion.Long) + "\n\nIn bash it needs the package bash-completion."
	completion.Args = cobra.ArbitraryArgs
	completion.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		shells := commandNames(cmd)
		return usagef("unknown shell %q%s", args[0], suggest(args[0], shells, "", "it is one of "+strings.Join(shells, ", ")))
	}
}

// completeKeys offers the keys of the backlog's open issues with their titles. It fails silently: completion has no
// place to say anything.
func (a *app) completeKeys(cmd *cobra.Command, typed []string, prefix string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	loaded, err := a.config(cmd)
	folder, _ := a.trackers.Folder() // completion asks no server
	if err != nil || folder.Open == nil || loaded.Inside("local.dir", loaded.Config.LocalDir) != nil {
		return nil, none
	}
	backlog, err := folder.New(tracker.Settings{Folder: loaded.Config.LocalDir})
	if err != nil {
		return nil, none
	}
	list, err := backlog.List(cmd.Context(), tracker.Query{})
	if err != nil {
		return nil, none
	}
	var keys []string
	for _, issue := range list.Issues {
		key := issue.Key
		if name := strings.TrimSuffix(issue.ID, ".md"); strings.HasPrefix(name, prefix) && plainWord(name) {
			key = name // both find it
		}
		if issue.Open && strings.HasPrefix(key, prefix) && !slices.Contains(typed, key) {
			keys = append(keys, cobra.CompletionWithDesc(key, shorten(cleanLine(issue.Title), 60)))
		}
	}
	return keys, none
}

// plainWord reports whether shells take a name as it is.
func plainWord(name string) bool {
	return !strings.HasPrefix(name, "-") && !strings.ContainsFunc(name, func(r rune) bool {
		return r < utf8.RuneSelf && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r)) || !unicode.IsPrint(r)
	})
}
