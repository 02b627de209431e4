package compose

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/sqlite"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// CompleteKeys offers the keys of the backlog's open issues with their titles.
func (a *App) CompleteKeys(cmd *cobra.Command, typed []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.complete(cmd, typed, prefix, openIssues, nil)
}

// CompleteClosed offers the keys of closed issues.
func (a *App) CompleteClosed(cmd *cobra.Command, typed []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.complete(cmd, typed, prefix, closedIssues, nil)
}

// CompleteWorked offers the keys of open issues, and of issues with runs, as `ralph status` lists them.
func (a *App) CompleteWorked(cmd *cobra.Command, typed []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.complete(cmd, typed, prefix, openIssues, func(journal.Record) bool { return true })
}

// CompleteUnmerged offers the keys of issues whose last run here has commits that it has not merged.
func (a *App) CompleteUnmerged(cmd *cobra.Command, typed []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.complete(cmd, typed, prefix, nil, func(r journal.Record) bool { return r.Commits > 0 && !r.Merged() })
}

// lister lists issues of a backlog of files. dir is its folder.
type lister func(ctx context.Context, backlog tracker.Tracker, dir string) []tracker.Issue

// complete offers the keys of issues, and of issues with such runs; each of the two may be nil. It only lists a backlog of files,
// because completion asks no server. It drops errors: completion has no place to print them.
func (a *App) complete(
	cmd *cobra.Command, typed []string, prefix string, issues lister, worked func(journal.Record) bool,
) (keys []string, _ cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	loaded, err := a.Config(cmd)
	if err != nil {
		return nil, none
	}
	offer := func(key, title string) {
		if strings.HasPrefix(key, prefix) && !slices.Contains(typed, key) {
			keys = append(keys, cobra.CompletionWithDesc(key, screen.Shorten(screen.CleanLine(title), 60)))
		}
	}
	runs := map[string]string{} // titles by keys
	if worked != nil {
		for _, r := range a.latestRuns(cmd.Context(), loaded.Config) {
			if worked(r) {
				runs[r.Key] = r.Title
			}
		}
	}
	folder, _ := a.Trackers.Folder()
	if issues != nil && folder.Open != nil && loaded.Inside("local.dir", loaded.Config.LocalDir) == nil {
		if backlog, err := folder.New(tracker.Settings{Folder: loaded.Config.LocalDir}); err == nil {
			for _, issue := range issues(cmd.Context(), backlog, loaded.Config.LocalDir) {
				key := issue.Key
				if name := strings.TrimSuffix(issue.ID, ".md"); strings.HasPrefix(name, prefix) && screen.PlainWord(name) {
					key = name // a command accepts name and key
				}
				delete(runs, issue.Key)
				offer(key, issue.Title)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(runs)) {
		offer(key, runs[key])
	}
	return keys, none
}

func openIssues(ctx context.Context, backlog tracker.Tracker, _ string) []tracker.Issue {
	list, err := backlog.List(ctx, tracker.Query{})
	if err != nil {
		return nil
	}
	return list.Issues
}

// closedIssues reads the files one by one, because a tracker lists open issues only.
func closedIssues(ctx context.Context, backlog tracker.Tracker, dir string) (list []tracker.Issue) {
	files, _ := os.ReadDir(dir)
	for _, file := range files {
		name, ok := strings.CutSuffix(file.Name(), ".md")
		if !ok {
			continue
		}
		if issue, err := backlog.Get(ctx, tracker.Key(name)); err == nil && !issue.Open {
			list = append(list, issue)
		}
	}
	return list
}

// latestRuns returns the latest run of each issue, and the open runs.
func (a *App) latestRuns(ctx context.Context, c config.Config) []journal.Record {
	place, err := a.locate(ctx)
	if err != nil {
		return nil
	}
	state, err := a.StateDir(c)
	if err == nil {
		state, err = worktree.StateDir(ctx, state, place)
	}
	file := journalFile(state)
	if err == nil {
		_, err = os.Stat(file) // opening would create it
	}
	if err != nil {
		return nil
	}
	store, err := sqlite.OpenToRead(ctx, file, nil)
	if err != nil {
		return nil
	}
	defer store.Close()
	last, _ := store.Find(ctx, journal.Query{Latest: true})
	open, _ := store.Find(ctx, journal.Query{Open: true})
	return append(last, open...)
}
