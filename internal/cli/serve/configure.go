package serve

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"github.com/rs/zerolog"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/work"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/worktree/git"
)

// configure reads the service's own configuration, and its list of projects. total limits the issues of all projects at a time.
func (s *serving) configure() (list []service.Project, total int, err error) {
	if s.Repo != "" && s.file != "" {
		return nil, 0, exit.Usagef("--repo and CONFIG exclude each other; CONFIG names the repositories")
	}
	if _, err := os.Stat(s.file); s.file != "" && errors.Is(err, fs.ErrNotExist) {
		return nil, 0, exit.Usagef("%s: no such file; create it with: ralph projects add --config %s REPO", s.file, git.Quote(s.file))
	}
	top := ""
	if s.file == "" { // an invalid configuration of the only project ends the command
		if top, err = s.Top(s.cmd.Context()); err != nil {
			return nil, 0, s.orProjects(err)
		}
	}
	loaded, err := config.Load(s.Sources(s.cmd.Flags(), top))
	if err != nil {
		return nil, 0, err
	}
	if s.state, err = s.StateDir(loaded.Config); err != nil {
		return nil, 0, err
	}
	if !loaded.Asked("log-level") {
		loaded.Config.LogLevel = zerolog.LevelInfoValue
	}
	s.log = slog.New(zerolog.NewSlogHandler(s.Logger(loaded.Config, true, s.UI.Err)))
	if s.LogsJSON(loaded.Config, true) {
		s.UI.Into(s.log)
	}
	if list, total, err = s.projects(); err == nil && total > 0 {
		err = work.Enough(total)
	}
	return list, total, err
}
