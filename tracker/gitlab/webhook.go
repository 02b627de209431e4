package gitlab

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
)

// signingPrefix is the prefix of a signing token. GitLab sends any other secret verbatim.
const signingPrefix = "whsec_"

// tolerance is the maximum difference between the time of a signed delivery and ours.
const tolerance = 5 * time.Minute

// readDelivery authenticates a delivery: by its signature if the secret is a signing token, otherwise by the token in its header.
func readDelivery(d tracker.Delivery) (tracker.Notice, error) {
	event := d.Header.Get("X-Gitlab-Event")
	if event == "" {
		return tracker.Notice{}, tracker.ErrNoDelivery
	}
	id := d.Header.Get("Idempotency-Key")
	if signing, is := strings.CutPrefix(string(d.Secret), signingPrefix); is {
		id = d.Header.Get("webhook-id")
		if err := checkSignature(d, id, signing); err != nil {
			return tracker.Notice{}, err
		}
	} else if !constantTimeEqual([]byte(d.Header.Get("X-Gitlab-Token")), d.Secret) {
		return tracker.Notice{}, tracker.ErrForged
	}
	var of struct {
		Project struct {
			Path string `json:"path_with_namespace"`
		} `json:"project"`
	}
	if json.Unmarshal(d.Body, &of) != nil {
		return tracker.Notice{}, tracker.ErrNoDelivery
	}
	project, err := ParseRemote(d.Project)
	if err != nil || !strings.EqualFold(of.Project.Path, project.Path) {
		return tracker.Notice{}, tracker.ErrOtherProject
	}
	return tracker.Notice{ID: id, Wake: slices.Contains(wakingEvents(), gl.EventType(event))}, nil
}

// checkSignature verifies a Standard Webhooks signature over ID, time and body. The header may have several signatures.
func checkSignature(d tracker.Delivery, id, signing string) error {
	key, err := base64.StdEncoding.DecodeString(signing)
	at := d.Header.Get("webhook-timestamp")
	seconds, terr := strconv.ParseInt(at, 10, 64)
	if err != nil || len(key) == 0 || id == "" || terr != nil {
		return tracker.ErrForged
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(d.Body)
	want, genuine := mac.Sum(nil), false
	for _, signature := range strings.Fields(d.Header.Get("webhook-signature")) {
		sent, isOne := strings.CutPrefix(signature, "v1,")
		got, err := base64.StdEncoding.DecodeString(sent)
		genuine = genuine || isOne && err == nil && hmac.Equal(got, want)
	}
	if !genuine {
		return tracker.ErrForged
	}
	if age := d.Now.Sub(time.Unix(seconds, 0)); age.Abs() > tolerance {
		return tracker.ErrStale
	}
	return nil
}

// constantTimeEqual compares in constant time, also if the lengths differ.
func constantTimeEqual(a, b []byte) bool {
	x, y := sha256.Sum256(a), sha256.Sum256(b)
	return len(b) > 0 && subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// wakingEvents returns the events after which an issue may be workable or a request may need a follow-up.
func wakingEvents() []gl.EventType {
	return []gl.EventType{
		gl.EventTypeIssue, gl.EventConfidentialIssue, gl.EventTypeNote, gl.EventConfidentialNote, gl.EventTypeMergeRequest,
		gl.EventTypePipeline, gl.EventTypeJob, gl.EventTypePush, "Emoji Hook",
	}
}
