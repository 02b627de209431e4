package sandboxes

import (
	"slices"
	"strings"
)

// denied returns the variables of the host's environment that an agent's commands do not inherit: credentials that can
// write to a tracker or push, and variables that point git at another repository. A "*" matches any characters. Keys of
// model services are inherited: no agent works without them.
func denied() []string {
	return []string{
		// Trackers and forges, also those of programs without a descriptor of their secrets.
		"GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GITHUB_PAT",
		"GITLAB_TOKEN", "GITLAB_PRIVATE_TOKEN", "GITLAB_ACCESS_TOKEN", "CI_JOB_TOKEN", "CI_JOB_JWT*", "CI_REGISTRY_PASSWORD",
		"CI_DEPLOY_PASSWORD", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
		"GITEA_TOKEN", "FORGEJO_TOKEN", "BITBUCKET_TOKEN", "LINEAR_API_KEY", "JIRA_API_TOKEN",
		// Ralph's own variables, and those that mark its processes.
		"RALPH_*TOKEN", "RALPH_*SECRET", "RALPH_*PASSWORD", "RALPH_MARK", "RALPH_EXEC",
		// Access for pushing, and programs that supply passwords.
		"SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS*", "GIT_ASKPASS", "GIT_SSH*", "GIT_CREDENTIAL*", "GCM_*",
		// A repository other than the worktree's, or another configuration.
		"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_INDEX_VERSION", "GIT_OBJECT_DIRECTORY",
		"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "GIT_NAMESPACE", "GIT_PREFIX",
		"GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE",
		"GIT_REPLACE_REF_BASE", "GIT_NO_REPLACE_OBJECTS", "GIT_INTERNAL_SUPER_PREFIX", "GIT_IMPLICIT_WORK_TREE",
		"GIT_CONFIG", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_*", "GIT_CONFIG_VALUE_*", "GIT_CONFIG_PARAMETERS",
		"GIT_TRACE*", "GIT_EXEC_PATH", "GIT_PUSH_OPTION_*", "GIT_REFLOG_ACTION",
	}
}

// inherit returns the host's environment without the denied names.
func inherit(host, deny []string) []string {
	exact := make(map[string]bool, len(deny))
	var patterns []string
	for _, d := range deny {
		if strings.Contains(d, "*") {
			patterns = append(patterns, d)
		} else {
			exact[d] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(host), func(entry string) bool {
		name, _, ok := strings.Cut(entry, "=")
		return !ok || name == "" || exact[name] || slices.ContainsFunc(patterns, func(p string) bool {
			return matches(p, name)
		})
	})
}

// matches reports whether a name matches a pattern with one "*".
func matches(pattern, name string) bool {
	head, tail, _ := strings.Cut(pattern, "*")
	return len(name) >= len(head)+len(tail) && strings.HasPrefix(name, head) && strings.HasSuffix(name, tail)
}
