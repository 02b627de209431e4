package git

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// commandVariables lists the variables of this process that every git command gets.
func commandVariables() []string {
	return []string{
		"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "USER", "LOGNAME",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES",
		"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
	}
}

// committerVariables lists those of commandVariables that determine the committer.
func committerVariables() []string {
	return slices.DeleteFunc(commandVariables(), func(name string) bool {
		return name == "PATH" || name == "TMPDIR" || name == "GIT_CEILING_DIRECTORIES"
	})
}

// WithCommitter returns a runner with the committer of another environment, for example an agent's.
func (g Runner) WithCommitter(environ []string) Runner {
	last := slices.Clone(environ)
	slices.Reverse(last) // the last value of a name counts
	theirs := pickVariables(last, committerVariables())
	if slices.Equal(theirs, pickVariables(g.env, committerVariables())) {
		return g
	}
	g.env = slices.DeleteFunc(slices.Clone(g.env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(committerVariables(), name)
	})
	g.env = append(g.env, theirs...)
	return g
}

// remoteVariables lists the variables that only commands with a remote get.
func remoteVariables() []string {
	return []string{
		"SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_VARIANT", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
	}
}

// hardenedSettings is the configuration that overrides every configuration file.
func hardenedSettings() []Setting {
	return []Setting{
		// Run no program, and start nothing in the background.
		{"core.hooksPath", "/dev/null"}, {"core.fsmonitor", "false"}, {"core.untrackedCache", "false"},
		{"core.editor", ":"}, {"gc.auto", "0"}, {"maintenance.auto", "false"}, {"protocol.ext.allow", "never"},
		{"commit.gpgSign", "false"}, {"tag.gpgSign", "false"}, {"push.gpgSign", "false"}, {"log.showSignature", "false"},
		{"merge.verifySignatures", "false"}, {"credential.interactive", "false"},
		// Stay within one repository.
		{"submodule.recurse", "false"}, {"push.recurseSubmodules", "no"}, {"fetch.recurseSubmodules", "false"},
		// Do not write configuration for a new branch: parallel writers of .git/config make each other fail.
		{"branch.autoSetupMerge", "false"}, {"branch.autoSetupRebase", "never"},
		// Wait for a ref's lock, which another process holds only briefly.
		{"core.filesRefLockTimeout", "20000"}, {"core.packedRefsTimeout", "20000"},
		// Make the result of a rebase independent of the user's settings.
		{"rebase.autoStash", "false"}, {"rebase.autoSquash", "false"}, {"rebase.updateRefs", "false"},
		{"rebase.rebaseMerges", "false"}, {"rebase.backend", "merge"}, {"rebase.forkPoint", "false"}, {"rerere.enabled", "false"},
	}
}

// HardenedEnv returns the environment that sets the hardened configuration and more.
func HardenedEnv(more ...Setting) []string {
	config := append(hardenedSettings(), more...)
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(config))}
	for i, s := range config {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s.Name, "GIT_CONFIG_VALUE_"+n+"="+s.Value)
	}
	return env
}

// baseEnv returns the environment of every git command. It takes nothing from environ but commandVariables.
func baseEnv(environ []string) []string {
	env := append(pickVariables(environ, commandVariables()),
		"LC_ALL=C", "LANGUAGE=", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_EDITOR=:",
		"GIT_OPTIONAL_LOCKS=0",     // status never writes the index
		"GIT_LITERAL_PATHSPECS=1",  // a file may be named *
		"GIT_NO_REPLACE_OBJECTS=1", // git must not replace an object's content
		"GIT_GRAFT_FILE=/dev/null", // git must not replace a commit's parents
	)
	return append(env, HardenedEnv()...)
}

// RemoteEnv returns the additional environment of commands with a remote. sshCommand is the user's core.sshCommand.
func RemoteEnv(environ []string, sshCommand string) []string {
	env := pickVariables(environ, remoteVariables())
	if own := pickVariables(environ, []string{"GIT_SSH_COMMAND"}); len(own) == 1 {
		sshCommand = strings.TrimPrefix(own[0], "GIT_SSH_COMMAND=")
	}
	if sshCommand == "" && len(pickVariables(environ, []string{"GIT_SSH"})) == 0 {
		sshCommand = "ssh"
	}
	if program, _, _ := strings.Cut(sshCommand, " "); filepath.Base(program) == "ssh" {
		sshCommand += " -o BatchMode=yes" // without it, ssh would ask on the terminal, which git's own settings do not prevent
	}
	if sshCommand != "" {
		env = append(env, "GIT_SSH_COMMAND="+sshCommand)
	}
	return env
}

// SigningEnv returns the additional environment of commands that sign. No program may ask for a passphrase on the terminal.
func SigningEnv() []string {
	return append(pickVariables(os.Environ(), []string{"SSH_AUTH_SOCK", "GNUPGHOME"}), "SSH_ASKPASS_REQUIRE=force")
}

// pickVariables returns the "NAME=value" entries of environ whose name is in names.
func pickVariables(environ, names []string) []string {
	var picked []string
	for _, name := range names {
		i := slices.IndexFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		if i >= 0 {
			picked = append(picked, environ[i])
		}
	}
	return picked
}
