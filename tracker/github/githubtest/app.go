package githubtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// AppID is the ID of the GitHub App that UseApp installs.
const AppID = 77

// appState is the GitHub App that ralph may log in as.
type appState struct {
	key    *rsa.PublicKey
	grants map[string]string
	minted int
}

// UseApp installs an app whose bot is Bot, and returns its private key. Its tokens expire after an hour.
func (s *Server) UseApp() []byte {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.app = &appState{key: &key.PublicKey, grants: map[string]string{
		"metadata": "read", "issues": "write", "contents": "write", "pull_requests": "write", "checks": "read", "statuses": "read"}}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

// Minted returns the number of tokens that the app got.
func (s *Server) Minted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.app.minted
}

// verifyJWT verifies a JWT by GitHub's rules.
func (a *appState) verifyJWT(token string, now time.Time) bool {
	end := max(strings.LastIndexByte(token, '.'), 0)
	text := token[:end]
	sig, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token[end:], "."))
	if err != nil {
		return false
	}
	sum := sha256.Sum256([]byte(text))
	if rsa.VerifyPKCS1v15(a.key, crypto.SHA256, sum[:], sig) != nil {
		return false
	}
	_, payload, _ := strings.Cut(text, ".")
	b, err := base64.RawURLEncoding.DecodeString(payload)
	var claims struct {
		Iat, Exp int64
		Iss      string
	}
	if err != nil || json.Unmarshal(b, &claims) != nil {
		return false
	}
	issued, ends := time.Unix(claims.Iat, 0), time.Unix(claims.Exp, 0)
	return claims.Iss == fmt.Sprint(AppID) && !issued.After(now) && ends.After(now) && ends.Sub(now) <= 10*time.Minute
}

func (q *request) appToken(parts []string) reply {
	if len(parts) == 1 {
		out := q.desc.object("integration")
		out["id"], out["slug"] = AppID, strings.TrimSuffix(Bot, "[bot]")
		return ok(out)
	}
	q.app.minted++
	ends := q.clock.Now().Add(time.Hour)
	token := fmt.Sprintf("ghs_minted%d", q.app.minted)
	q.tokens[token] = &Access{Login: Bot, Ends: ends}
	out := q.desc.object("installation-token")
	clear(out)
	out["token"], out["expires_at"], out["permissions"] = token, stamp(ends), q.app.grants
	return reply{status: http.StatusCreated, body: out}
}

func (q *request) installationReply() reply {
	out := q.desc.object("installation")
	out["id"], out["app_id"] = 4242, AppID
	return ok(out)
}
