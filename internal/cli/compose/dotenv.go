package compose

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/subosito/gotenv"
	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/worktree"
)

// DotEnvFile is the file of the user's keys. Sandboxes, worktrees, prompts and requests never get it.
const DotEnvFile = scaffold.Dir + "/.env"

// dotEnv reads .ralph/.env of the checkout and adds variables to the environment that it lacks: only keys of agents, tokens of
// forges, and names in agent-env. It refuses a file that git tracks, because another person may have written it.
func (a *App) dotEnv(ctx context.Context, top string, repo *worktree.Repo, c config.Config) error {
	name := filepath.Join(top, DotEnvFile)
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return &exit.Error{Status: exit.Usage, Err: err}
	}
	if folder, err := os.Lstat(filepath.Join(top, scaffold.Dir)); err != nil || !folder.IsDir() || !info.Mode().IsRegular() || info.Size() > 64<<10 {
		return exit.Usagef("%s must be a regular file of at most 64 KiB in a regular folder: ralph follows no links to keys", name)
	}
	// The repository may spell the path in another case, and .ralph may be a submodule.
	tracked := false
	err = repo.Git().WithDir(top).With("GIT_LITERAL_PATHSPECS=0").Lines(ctx, func(line []byte) {
		tracked = tracked || strings.EqualFold(string(line), DotEnvFile) || strings.EqualFold(string(line), scaffold.Dir)
	}, "ls-files", "--", ":(icase)"+scaffold.Dir)
	if err != nil {
		return err
	}
	if tracked {
		return exit.Usagef("%s is tracked by git, so its author would choose your keys; remove it from git with git rm --cached", name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return &exit.Error{Status: exit.Usage, Err: err}
	}
	values, err := gotenv.StrictParse(bytes.NewReader(text))
	if err != nil { // the error's text would show a secret
		return exit.Usagef("%s: a line is neither NAME=VALUE nor empty nor a comment", name)
	}
	named := append(a.Trackers.SecretVars(), c.TokenEnv...)
	for _, agent := range a.Agents().All() {
		for _, key := range agent.Describe().Login.Keys {
			named = append(named, key.Env)
		}
	}
	named = append(named, slices.DeleteFunc(slices.Clone(c.AgentEnv), func(e string) bool { return strings.Contains(e, "=") })...)
	for _, n := range named {
		if v := values[n]; v != "" && a.Host.Getenv(n) == "" {
			a.Host.Env = append(slices.Clone(a.Host.Env), n+"="+v)
		}
	}
	return nil
}
