package scaffold

// npmPackage is what puts the agent's program into the image; empty for an agent that is not on npm.
func npmPackage(agent string) string {
	switch agent {
	case "claude-code":
		return "@anthropic-ai/claude-code@2.1.329"
	case "codex":
		return "@openai/codex@0.169.0"
	}
	return ""
}

// credentials are the variables the agent logs in with; any one of them is enough.
func credentials(agent string) []string {
	switch agent {
	case "claude-code":
		return []string{"CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY"}
	case "codex":
		return []string{"OPENAI_API_KEY"}
	}
	return nil
}
