package prompt

import (
	"strings"

	"github.com/ralph-pool/ralph/internal/neutral"
)

// issueSection returns the issue as data; empty if there is none.
func issueSection(builtin map[string]string) string {
	title, body := builtin["issue_title"], builtin["issue_body"]
	if title == "" && body == "" {
		return ""
	}
	var head strings.Builder
	if key := builtin["issue_key"]; key != "" {
		head.WriteString("Key: " + neutral.Excerpt(key, 200) + "\n")
	}
	head.WriteString("Title: " + neutral.Excerpt(title, 1000) + "\n")
	if url := builtin["issue_url"]; url != "" {
		head.WriteString("Where: " + neutral.Excerpt(url, 1000) + "\n")
	}
	text := head.String()
	if strings.TrimSpace(body) != "" {
		text += "\n" + body
	}
	if comments := strings.TrimSpace(builtin["issue_comments"]); comments != "" {
		text = strings.TrimRight(text, "\n") + "\n\nComments on it, the oldest first:\n\n" + comments
	}
	return "## The issue\n\n" + Fence(text)
}
