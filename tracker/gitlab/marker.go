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

func (t *Tracker) marker(iid int, run string) string {
	return fmt.Sprintf("<!-- ralph:report run=%s mac=%s -->", escaped(run), hex.EncodeToString(t.mac(iid, run)))
}

func (t *Tracker) mac(iid int, run string) []byte {
	m := hmac.New(sha256.New, t.cfg.MarkerKey)
	_, _ = fmt.Fprintf(m, "gitlab report\x00%d\x00%s", iid, run) // a hash takes everything
	return m.Sum(nil)
}

// escaped makes a run's id fit to stand in an HTML comment.
func escaped(run string) string { return strings.ReplaceAll(url.QueryEscape(run), "-", "%2D") }

// marked reads the run of a report; false when the text is none of ralph's about that issue.
func (t *Tracker) marked(iid int, text string) (run string, ok bool) {
	m := markerLine.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	run, err := url.QueryUnescape(m[1])
	if err != nil {
		return "", false
	}
	mac, err := hex.DecodeString(m[2])
	return run, err == nil && hmac.Equal(mac, t.mac(iid, run))
}
