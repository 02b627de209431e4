package serve

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/attach"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/worktree"
)

const projectsLong = `List, add, pause, resume and remove the projects of a service (ralph serve).

The projects are in a YAML file, whose comments are kept. A running service reloads the file by itself. A paused project
starts no new runs, also after a restart of the service; its current runs continue.`

// projectsOptions holds the flags of all subcommands.
type projectsOptions struct {
	*compose.App
	file, listen, tokenFile string
}

// NewProjects returns `ralph projects`.
func NewProjects(a *compose.App) *cobra.Command {
	o := &projectsOptions{App: a}
	cmd := &cobra.Command{
		Use:     "projects",
		Short:   "List, add, pause and remove the projects of a service",
		Long:    projectsLong,
		GroupID: compose.GroupWork,
		Example: "  ralph projects add ~/src/shop\n  ralph projects list\n  ralph projects pause shop",
	}
	cmd.PersistentFlags().StringVarP(&o.file, "config", "c", "", "`file` with the projects (default ~/.config/ralph/serve.yaml)")
	cmd.PersistentFlags().StringVar(&o.listen, "listen", "", "`address` of the service's API: "+
		"HOST:PORT or unix:PATH (default "+usualListen+")")
	cmd.PersistentFlags().StringVar(&o.tokenFile, "listen-token-file", "", "`file` with its token; else "+config.ListenTokenVariable)
	list := &cobra.Command{
		Use: "list", Short: "List the projects and what each is doing", Args: exit.NoArgs, Example: "  ralph projects list",
		RunE: func(cmd *cobra.Command, _ []string) error { return o.list(cmd) },
	}
	a.AddJSON(list)
	name := ""
	add := &cobra.Command{
		Use:     "add [REPO]",
		Short:   "Add a repository",
		Args:    exit.AtMostOne("REPO"),
		Example: "  ralph projects add ~/src/shop\n  ralph projects add --name website ~/src/site",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.add(cmd, strings.Join(args, ""), name) },
	}
	add.Flags().StringVar(&name, "name", "", "`name` of the project (default the folder's)")
	cmd.AddCommand(list, add,
		o.onProject("pause", "Pause a project: no new run starts", func(cmd *cobra.Command, name string) error { return o.pause(cmd, name, true) }),
		o.onProject("resume", "End the pause of a project", func(cmd *cobra.Command, name string) error { return o.pause(cmd, name, false) }),
		o.onProject("remove", "Remove a project from the file; its repository is not changed", o.remove))
	return cmd
}

// onProject returns a subcommand for one project.
func (o *projectsOptions) onProject(verb, short string, do func(cmd *cobra.Command, name string) error) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Example: "  ralph projects " + verb + " shop",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("%s takes one NAME; `ralph projects list` lists them", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			if list, err := o.read(); err == nil {
				return names(list), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return do(cmd, args[0])
		},
	}
}

// find reads the projects from the file, and returns the index of the named one.
func (o *projectsOptions) find(name string) (list []config.Project, at int, err error) {
	if list, err = o.read(); err != nil {
		return nil, 0, err
	}
	if at = slices.Index(names(list), name); at < 0 {
		return nil, 0, exit.Usagef("%s has no project %q%s", o.path(), name, nearestProject(name, names(list)))
	}
	return list, at, nil
}

func names(list []config.Project) (names []string) {
	for _, p := range list {
		names = append(names, p.Name)
	}
	return names
}

// nearestProject returns the end of an error about an unknown project.
func nearestProject(name string, names []string) string {
	return exit.Suggest(name, names, "", "`ralph projects list` lists them")
}

// there returns a client of the service.
func (o *projectsOptions) there() (*attach.Service, error) {
	o.listen = cmp.Or(o.listen, serviceHere(o.App))
	return clientOf(o.App, "--listen", o.listen, o.tokenFile)
}

// path returns the path of the file with the projects.
func (o *projectsOptions) path() string {
	if o.file != "" {
		return o.Expand(o.Host.Dir, o.file)
	}
	return config.ServiceFile(o.Host.Env)
}

func (o *projectsOptions) read() ([]config.Project, error) {
	file, err := config.ReadService(o.path(), o.Host.Env, o.Choices())
	if err != nil {
		if _, serr := os.Stat(o.path()); errors.Is(serr, fs.ErrNotExist) {
			return nil, exit.Usagef("%s does not exist; `ralph projects add REPO` makes it, and --config names another", o.path())
		}
		return nil, err
	}
	return file.Projects, nil
}

// ProjectData is one project of `ralph projects list`.
type ProjectData struct {
	Name    string `json:"name"`
	Repo    string `json:"repo"`
	State   string `json:"state"` // as the service reports it, or not-running
	Problem string `json:"problem,omitempty"`
	Running int    `json:"running"`
	// WaitsForSlot says that other projects have all slots.
	WaitsForSlot bool `json:"waits_for_slot,omitempty"`
}

// list shows the projects of the file and of the service. It still shows the service's if the file is invalid.
func (o *projectsOptions) list(cmd *cobra.Command) error {
	list, unread := o.read()
	there, err := o.there()
	if err != nil {
		return err
	}
	defer there.Close()
	known, away := there.Projects(cmd.Context())
	if away != nil && !errors.Is(away, attach.ErrNoService) {
		return refused(away)
	}
	if unread != nil {
		if away != nil {
			return unread
		}
		o.UI.Warn(unread.Error())
	}
	for _, p := range known { // for example removed ones with open runs
		if !slices.Contains(names(list), p.Name) {
			list = append(list, config.Project{Name: p.Name, Repo: p.Repo})
		}
	}
	shown := []ProjectData{}
	for _, p := range list {
		s := ProjectData{Name: p.Name, Repo: p.Repo, State: "not-running"}
		for _, of := range known {
			if of.Name == p.Name {
				s.State, s.Problem, s.Running, s.WaitsForSlot = of.State, of.Problem, len(of.Running), of.WaitsForSlot
			}
		}
		if file, err := o.pauseFile(cmd, p, true); away != nil && err == nil {
			if _, err := os.Stat(file); err == nil {
				s.State = string(service.Paused)
			}
		}
		shown = append(shown, s)
	}
	if o.JSON {
		return o.UI.JSON(shown)
	}
	rows := [][]string{{"PROJECT", "STATE", "RUNNING", "REPOSITORY", "PROBLEM"}}
	for _, s := range shown {
		state := s.State
		if s.WaitsForSlot {
			state += ", waits for a slot"
		}
		rows = append(rows, []string{s.Name, state, fmt.Sprint(s.Running), s.Repo, screen.CleanLine(s.Problem)})
	}
	o.UI.Table(rows)
	if away != nil {
		o.UI.Note("%s", away)
	}
	return nil
}

func (o *projectsOptions) add(cmd *cobra.Command, repo, name string) error {
	folder := o.Expand(o.Host.Dir, cmp.Or(repo, "."))
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return exit.Usagef("%s does not exist; give the folder of a repository: ralph projects add FOLDER", folder)
	}
	place, err := worktree.Locate(cmd.Context(), folder)
	if err != nil {
		return &exit.Error{Status: exit.Usage, Err: err}
	}
	text, err := os.ReadFile(o.path())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := o.addable(place.Top, cmp.Or(name, filepath.Base(place.Top))); err != nil {
		return err
	}
	changed, err := addProject(string(text), place.Top, name)
	if err != nil {
		return exit.Usagef("%s: %w", o.path(), err)
	}
	if err := os.MkdirAll(filepath.Dir(o.path()), 0o700); err != nil {
		return err
	}
	if err := replaceProjects(o.App, o.path(), changed); err != nil {
		return err
	}
	o.UI.Printf("Added %s to %s.\n", screen.CleanLine(cmp.Or(name, filepath.Base(place.Top))), o.path())
	return o.says(cmd, "ralph serve "+o.path())
}

// addable refuses a project whose name is invalid, or whose name or repository is in the file already. Other errors in the
// file are found later.
func (o *projectsOptions) addable(repo, name string) error {
	if !config.IsProjectName(name) {
		return exit.Usagef("project %q needs a name of A to Z, a to z, 0 to 9, . _ -: --name NAME", name)
	}
	file, err := config.ReadService(o.path(), o.Host.Env, o.Choices())
	if err != nil {
		return nil //nolint:nilerr // there may be no file yet
	}
	for _, p := range file.Projects {
		switch {
		case p.Repo == repo:
			return exit.Usagef("%s is in %s already, as project %s", repo, o.path(), p.Name)
		case p.Name == name:
			return exit.Usagef("%s already has a project with the name %s; give this one another: --name NAME", o.path(), name)
		}
	}
	return nil
}

func (o *projectsOptions) remove(cmd *cobra.Command, name string) error {
	list, at, err := o.find(name)
	if err != nil {
		return err
	}
	if len(list) == 1 {
		return exit.Usagef("%s is the only project of %s; stop the service instead, or remove the file", name, o.path())
	}
	text, err := os.ReadFile(o.path())
	if err != nil {
		return err
	}
	changed, err := removeProject(string(text), at)
	if err != nil {
		return exit.Usagef("%s: %w", o.path(), err)
	}
	if err := replaceProjects(o.App, o.path(), changed); err != nil {
		return err
	}
	o.UI.Printf("Removed %s from %s. Ralph keeps the records of its runs.\n", screen.CleanLine(name), o.path())
	return o.says(cmd, "")
}

// says prints the effect of a change of the file.
func (o *projectsOptions) says(cmd *cobra.Command, begin string) error {
	there, err := o.there()
	if err != nil {
		return err
	}
	defer there.Close()
	switch err := there.Ready(cmd.Context()); {
	case err == nil:
		o.UI.Note("the service applies this within seconds; current runs continue to their end")
	case errors.Is(err, attach.ErrNoService) && begin != "":
		o.UI.Note("%s; start one with: %s", err, begin)
	}
	return nil
}

// pause asks the service to pause or resume a project, which need not be in the file. Without a service it writes the pause
// file, which the next start reads.
func (o *projectsOptions) pause(cmd *cobra.Command, name string, paused bool) error {
	done := "Resumed %s.\n"
	if paused {
		done = "Paused %s: no new run starts; current runs continue.\n"
	}
	there, err := o.there()
	if err != nil {
		return err
	}
	defer there.Close()
	err = there.Pause(cmd.Context(), name, paused)
	if errors.Is(err, attach.ErrNoService) {
		if err = o.writePause(cmd, name, paused); err == nil {
			o.UI.Note("no service listens at %s: this applies from its next start on this machine", screen.CleanLine(o.listen))
		}
	}
	if answer, is := errors.AsType[*attach.RefusedError](err); is && answer.Code == http.StatusNotFound {
		var has []string
		known, other := there.Projects(cmd.Context())
		for _, p := range known {
			has = append(has, p.Name)
		}
		if errors.Is(other, attach.ErrOther) {
			return refused(other)
		}
		return exit.Usagef("the service has no project %s%s", name, nearestProject(name, has))
	}
	if err != nil {
		return refused(err)
	}
	o.UI.Printf(done, screen.CleanLine(name))
	return nil
}

// writePause marks a project of the file as paused or not.
func (o *projectsOptions) writePause(cmd *cobra.Command, name string, paused bool) error {
	list, at, err := o.find(name)
	if err != nil {
		return err
	}
	file, err := o.pauseFile(cmd, list[at], false)
	if err != nil {
		return err
	}
	return service.WritePause(file, paused)
}

// pauseFile returns the path of the file that marks a project as paused. With looks the project's configuration need not be
// trusted.
func (o *projectsOptions) pauseFile(cmd *cobra.Command, p config.Project, looks bool) (string, error) {
	b := *o.App
	b.Repo, b.Project = p.Repo, &p
	place, err := worktree.Locate(cmd.Context(), p.Repo)
	if err != nil {
		return "", err
	}
	from := b.Sources(cmd.Flags(), place.Top)
	from.Looks = looks
	loaded, err := config.Load(from)
	if err != nil {
		return "", err
	}
	state, err := b.StateDir(loaded.Config)
	if err != nil {
		return "", err
	}
	dir, err := worktree.StateDir(cmd.Context(), state, place)
	return service.PauseFile(dir), err
}
