package git

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// passed are the variables of this process that every git command gets.
func passed() []string {
	return []string{
		"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "USER", "LOGNAME",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES",
		"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
	}
}

// personal are those of them that say who commits.
func personal() []string {
	return slices.DeleteFunc(passed(), func(name string) bool {
		return name == "PATH" || name == "TMPDIR" || name == "GIT_CEILING_DIRECTORIES"
	})
}

// Under is the runner for somebody with another environment, such as an agent, who commits in the name that git finds there.
func (g Runner) Under(environ []string) Runner {
	last := slices.Clone(environ)
	slices.Reverse(last) // the last one of a name counts
	theirs := pick(last, personal())
	if slices.Equal(theirs, pick(g.env, personal())) {
		return g
	}
	g.env = slices.DeleteFunc(slices.Clone(g.env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(personal(), name)
	})
	g.env = append(g.env, theirs...)
	return g
}

// passedToRemote are passed only to commands that talk to a remote.
func passedToRemote() []string {
	return []string{
		"SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_VARIANT", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
	}
}

// hardened is the configuration that wins over every file.
func hardened() []Setting {
	return []Setting{
		// Nothing is run, and nothing is started in the background.
		{"core.hooksPath", "/dev/null"}, {"core.fsmonitor", "false"}, {"core.untrackedCache", "false"},
		{"core.editor", ":"}, {"gc.auto", "0"}, {"maintenance.auto", "false"}, {"protocol.ext.allow", "never"},
		{"commit.gpgSign", "false"}, {"tag.gpgSign", "false"}, {"push.gpgSign", "false"}, {"log.showSignature", "false"},
		{"merge.verifySignatures", "false"}, {"credential.interactive", "false"},
		// One repository at a time.
		{"submodule.recurse", "false"}, {"push.recurseSubmodules", "no"}, {"fetch.recurseSubmodules", "false"},
		// A new branch writes no configuration: parallel writers of .git/config fail each other.
		{"branch.autoSetupMerge", "false"}, {"branch.autoSetupRebase", "never"},
		// git itself waits for the lock of a ref that another process holds for a moment.
		{"core.filesRefLockTimeout", "20000"}, {"core.packedRefsTimeout", "20000"},
		// The result of a rebase does not depend on the user's taste.
		{"rebase.autoStash", "false"}, {"rebase.autoSquash", "false"}, {"rebase.updateRefs", "false"},
		{"rebase.rebaseMerges", "false"}, {"rebase.backend", "merge"}, {"rebase.forkPoint", "false"}, {"rerere.enabled", "false"},
	}
}

// HardenedEnv is the environment that sets the hardened configuration and more.
func HardenedEnv(more ...Setting) []string {
	config := append(hardened(), more...)
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(config))}
	for i, s := range config {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s.Name, "GIT_CONFIG_VALUE_"+n+"="+s.Value)
	}
	return env
}

// baseEnv is the environment of every git command, built from nothing.
func baseEnv(environ []string) []string {
	env := append(pick(environ, passed()),
		"LC_ALL=C", "LANGUAGE=", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_EDITOR=:",
		"GIT_OPTIONAL_LOCKS=0",     // status never writes the index
		"GIT_LITERAL_PATHSPECS=1",  // a file may be called *
		"GIT_NO_REPLACE_OBJECTS=1", // an object has the content that its name says
		"GIT_GRAFT_FILE=/dev/null", // and a commit the parents that it names
	)
	return append(env, HardenedEnv()...)
}

// RemoteEnv is what a command that talks to a remote gets in addition, from an environment. sshCommand is the user's core.sshCommand.
func RemoteEnv(environ []string, sshCommand string) []string {
	env := pick(environ, passedToRemote())
	if own := pick(environ, []string{"GIT_SSH_COMMAND"}); len(own) == 1 {
		sshCommand = strings.TrimPrefix(own[0], "GIT_SSH_COMMAND=")
	}
	if sshCommand == "" && len(pick(environ, []string{"GIT_SSH"})) == 0 {
		sshCommand = "ssh"
	}
	if program, _, _ := strings.Cut(sshCommand, " "); filepath.Base(program) == "ssh" {
		sshCommand += " -o BatchMode=yes" // ssh asks on the terminal, past everything git forbids
	}
	if sshCommand != "" {
		env = append(env, "GIT_SSH_COMMAND="+sshCommand)
	}
	return env
}

// SigningEnv is what a command that signs gets in addition. No program asks for a passphrase on the terminal.
func SigningEnv() []string {
	return append(pick(os.Environ(), []string{"SSH_AUTH_SOCK", "GNUPGHOME"}), "SSH_ASKPASS_REQUIRE=force")
}

// pick returns the "K=V" entries of environ whose name is in names.
func pick(environ, names []string) []string {
	var picked []string
	for _, name := range names {
		i := slices.IndexFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		if i >= 0 {
			picked = append(picked, environ[i])
		}
	}
	return picked
}
