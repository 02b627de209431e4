package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// CheckAddress returns an error unless the address is empty, HTTPS, or HTTP on this host: anything else would expose
// messages, and the secret in the address, on the network.
func CheckAddress(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" { // the parser's error would contain the address
		return errors.New("is not an address such as https://example.com/hook")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isLocal(u.Hostname())) {
		return errors.New("must begin with https://, or lead to this host")
	}
	return nil
}

// Webhook posts messages as JSON. With a key it signs them according to Standard Webhooks.
type Webhook struct {
	Address string
	Key     []byte // empty: not signed
	Client  *http.Client
}

// Name implements Channel.
func (Webhook) Name() string { return "webhook" }

// Place implements Channel.
func (w Webhook) Place() string { return w.Address }

// Send implements Channel.
func (w Webhook) Send(ctx context.Context, m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return errors.Join(err, errFinal)
	}
	header := http.Header{}
	if len(w.Key) > 0 {
		at := strconv.FormatInt(time.Now().Unix(), 10)
		header.Set("webhook-id", m.ID)
		header.Set("webhook-timestamp", at)
		header.Set("webhook-signature", sign(w.Key, m.ID, at, body))
	}
	return post(ctx, w.Client, w.Address, header, body)
}

func sign(key []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Slack posts messages to an incoming webhook of Slack, whose address is a secret.
type Slack struct {
	Address string
	Client  *http.Client
}

// Name implements Channel.
func (Slack) Name() string { return "slack" }

// Place implements Channel.
func (s Slack) Place() string { return s.Address }

// Send implements Channel. The message is sent as data: its text cannot mention people, contain links or be formatted. The
// texts of links are constant.
func (s Slack) Send(ctx context.Context, m Message) error {
	plain := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(m.Text)
	blocks := []any{map[string]any{
		"type": "section", "text": map[string]any{"type": "plain_text", "text": m.Text, "emoji": false},
	}}
	if links := m.links(); links != "" {
		blocks = append(blocks, map[string]any{
			"type": "section",
			"text": map[string]any{"type": "mrkdwn", "text": links, "verbatim": true},
		})
	}
	body, err := json.Marshal(map[string]any{"text": plain, "blocks": blocks})
	if err != nil {
		return errors.Join(err, errFinal)
	}
	return post(ctx, s.Client, s.Address, http.Header{}, body)
}

// links returns the message's addresses in Slack's link syntax.
func (m Message) links() string {
	var list []string
	for _, link := range [][2]string{{"Issue", m.IssueURL}, {"Request", m.RequestURL}, {"Run", m.RunURL}, {"Project", m.ProjectURL}} {
		if CheckPage(link[1]) == nil && link[1] != "" { // the URL of a local issue is a file path
			list = append(list, "<"+strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C").Replace(link[1])+"|"+link[0]+">")
		}
	}
	return strings.Join(list, " · ")
}

// CheckPage returns an error if the address is neither empty nor HTTP(S).
func CheckPage(address string) error {
	u, err := url.Parse(address)
	if address != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
		return errors.New("must be an address that begins with https:// or http://")
	}
	return nil
}

// post sends a body. Its errors do not contain the address.
func post(ctx context.Context, client *http.Client, address string, header http.Header, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: the address cannot be used", errFinal)
	}
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "ralph")
	only := *client // a redirect would send the message elsewhere
	only.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := only.Do(r)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
	switch code := res.StatusCode; {
	case code/100 == 2:
		return nil
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		return fmt.Errorf("the receiver answers %d", code)
	default:
		return fmt.Errorf("%w: the receiver answers %d", errFinal, code)
	}
}
