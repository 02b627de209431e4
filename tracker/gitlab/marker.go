package gitlab

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// markerLine is the last line of a report: it names the run, and proves that ralph wrote it about that issue.
var markerLine = regexp.MustCompile(`(?:^|\n)<!-- ralph:report run=(\S*) mac=([0-9a-f]{64}) -->\s*$`)

func marker(run, proof string) string {
	return fmt.Sprintf("<!-- ralph:report run=%s mac=%s -->", escaped(run), proof)
}

// Proof implements tracker.Prover.
func (t *Tracker) Proof(key, run string) string {
	iid, _ := numberOf(key) // nobody reports on any other
	return t.proof(iid, run)
}

// proof binds a run to this issue.
func (t *Tracker) proof(iid int, run string) string {
	m := hmac.New(sha256.New, t.cfg.MarkerKey)
	_, _ = fmt.Fprintf(m, "gitlab report\x00%s\x00%d\x00%s", t.cfg.Project.String(), iid, run) // a hash takes everything
	return hex.EncodeToString(m.Sum(nil))
}

// escaped makes a run's id fit to stand in an HTML comment.
func escaped(run string) string { return strings.ReplaceAll(url.QueryEscape(run), "-", "%2D") }

// marked reads the marker of a report. What it says is still to be proven.
func marked(text string) (run, proof string, ok bool) {
	m := markerLine.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	run, err := url.QueryUnescape(m[1])
	return run, m[2], err == nil
}
