package worktree

import (
	"path/filepath"
	"strconv"
	"strings"
)

// passed are the variables every git command gets: where programs and the user's configuration are, and who the user is.
func passed() []string {
	return []string{
		"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "USER", "LOGNAME",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
		"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
	}
}

// passedToRemote are passed only to commands that talk to a remote.
func passedToRemote() []string {
	return []string{
		"SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_VARIANT", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
	}
}

// hardened is the configuration that wins over every file.
func hardened() [][2]string {
	return [][2]string{
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

// gitEnv is the environment of every git command, built from nothing.
func gitEnv(environ []string) []string {
	config := hardened()
	env := append(pick(environ, passed()),
		"LC_ALL=C", "LANGUAGE=", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_EDITOR=:",
		"GIT_OPTIONAL_LOCKS=0",     // status never writes the index
		"GIT_LITERAL_PATHSPECS=1",  // a file may be called *
		"GIT_NO_REPLACE_OBJECTS=1", // what an agent committed is what it committed
		"GIT_GRAFT_FILE=/dev/null", // and its parents are what it says
		"GIT_CONFIG_COUNT="+strconv.Itoa(len(config)),
	)
	for i, kv := range config {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+kv[0], "GIT_CONFIG_VALUE_"+n+"="+kv[1])
	}
	return env
}

// netEnv is what a command that talks to a remote gets in addition. sshCommand is the user's core.sshCommand.
func netEnv(environ []string, sshCommand string) []string {
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

// pick returns the "K=V" entries of environ whose name is in names.
func pick(environ, names []string) []string {
	var picked []string
	for _, name := range names {
		for _, kv := range environ {
			if strings.HasPrefix(kv, name+"=") {
				picked = append(picked, kv)
				break
			}
		}
	}
	return picked
}
