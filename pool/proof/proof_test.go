package proof

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"golang.org/x/crypto/ssh"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// newKey makes a key in OpenSSH's format.
func newKey(t testing.TB) *Key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ReadKey(keep(t, 0o600, pem.EncodeToMemory(block)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// keep writes a file.
func keep(t testing.TB, mode os.FileMode, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, text, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func object(digit string) string { return strings.Repeat(digit, 40) }

// record returns a successful run.
func record() journal.Record {
	passed := []loop.Check{{Command: "make test", Duration: time.Second}}
	return journal.Record{
		Run: journal.Run{
			ID: "run-1", Key: "fix-login", URL: "https://forge.example/1", Hash: "texthash-comments", Branch: "ralph/fix-login", Base: "main",
			Agent: "claude-code", Model: "m", Sandbox: "native", Started: time.Unix(1000, 0),
		},
		State: journal.State{
			Tip: object("1"), Commits: 2,
			Facts: journal.Facts{
				Verify:     &journal.Verification{Tip: object("1"), Checks: passed},
				Iterations: []loop.Iteration{{Agent: "claude-code", Model: "m", Prompt: "p1"}, {Agent: "codex", Prompt: "p2"}, {Agent: "codex", Prompt: "p3"}},
				Review:     &journal.Review{Tip: object("1"), Agent: "codex:r", Accepted: true},
				Retest: &journal.Retest{Tip: object("1"), Base: object("3"), Proved: true, Runs: []journal.Rerun{{
					Command: "go test ./a", Files: []string{"a/a_test.go"}, Base: journal.TestRun{Outcome: journal.TestsFailed, ExitCode: 1, Duration: time.Second, Log: "base.log", Tail: "no part of it"},
					Tip: &journal.TestRun{Outcome: journal.TestsPassed, Duration: time.Second, Log: "tip.log"},
				}}},
				Watch: &journal.Watch{Files: []journal.Watched{{Path: "a_test.go"}}, Added: 3, Canaries: []journal.Canary{{Path: "c", Noticed: true}}},
			},
		},
	}
}

func statement(r journal.Record) Statement {
	return statementOf(r, objects{r.Tip, object("2"), object("3")}, "v1", time.Unix(2000, 0), func(name string) *Log { return &Log{name, "0123"} })
}

func signed(t testing.TB, s Statement, key *Key) string {
	t.Helper()
	line, err := sign(t.Context(), s, key)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestStatement(t *testing.T) {
	t.Parallel()
	got, err := json.MarshalIndent(statement(record()), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/statement.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(append(got, '\n'), want) {
		t.Errorf("the format has changed, and with it what has been signed: another PredicateType is due\n%s", got)
	}
}

// Without a clean checkout, the gate of the last iteration counts.
func TestStatementOfWorktreeGate(t *testing.T) {
	t.Parallel()
	r := record()
	r.Facts.Gate, r.Facts.Verify.Tip = []loop.Check{{Command: "in the tree"}}, object("9")
	s := statement(r)
	if g := s.Predicate.Gate; g.Checkout || g.Lines[0].Command != "in the tree" || g.Lines[0].Log.Name != "gate-3-1.log" {
		t.Errorf("gate: %+v", g)
	}
	if !strings.Contains(strings.Join(s.Limitations(), "\n"), "uncommitted files") {
		t.Errorf("it leaves open: %q", s.Limitations())
	}
	r.URL, r.Facts.Iterations = "/home/ada/backlog/1.md", nil
	if p := statement(r).Predicate; p.Issue.URL != "" || len(p.Agents) > 0 {
		t.Errorf("issue %+v, agents %+v", p.Issue, p.Agents)
	}
}

// Only an answer about exactly these commits counts as a review.
func TestStatementOfReview(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		review *journal.Review
		want   Review
		says   string
	}{
		"none":      {nil, Review{}, "that anybody has reviewed the change"},
		"failed":    {&journal.Review{Tip: object("1"), Agent: "r", Failed: "it hung"}, Review{}, "that anybody has reviewed the change"},
		"of others": {&journal.Review{Tip: object("9"), Agent: "r", Accepted: true}, Review{}, "that anybody has reviewed the change"},
		"refused":   {&journal.Review{Tip: object("1"), Agent: "r"}, Review{Done: true, Agent: "r"}, "r, which had no part in the change, reviewed it and does not accept it"},
		"accepted":  {&journal.Review{Tip: object("1"), Agent: "r", Accepted: true}, Review{true, "r", true}, "r, which had no part in the change, reviewed it and accepts it"},
	} {
		r := record()
		r.Facts.Review = c.review
		s := statement(r)
		if got := s.Predicate.Review; got != c.want || !slices.Contains(append(s.Summary(), s.Limitations()...), c.says) {
			t.Errorf("%s: %+v, %q, %q", name, got, s.Summary(), s.Limitations())
		}
	}
}

// facts returns facts under which the record's statement holds.
func facts() Facts {
	return Facts{Tree: object("2"), Base: true, Branches: map[string]string{"the branch here": object("1")}, Named: true, Text: "texthash"}
}

func TestFindAndJudge(t *testing.T) {
	t.Parallel()
	mine, other := newKey(t), newKey(t)
	later := record()
	later.ID = "run-2"
	newer := statement(later)
	newer.Predicate.Finished = time.Unix(3000, 0).UTC()
	elsewhere := record()
	elsewhere.Tip = object("7")
	good := signed(t, statement(record()), mine)
	var e dsse.Envelope
	if err := json.Unmarshal([]byte(good), &e); err != nil {
		t.Fatal(err)
	}
	forged := e
	text, _ := base64.StdEncoding.DecodeString(e.Payload)
	forged.Payload = base64.StdEncoding.EncodeToString(bytes.Replace(text, []byte("make test"), []byte("true #tes"), 1))
	typed := e
	typed.PayloadType = "text/plain"
	line := func(e dsse.Envelope) string {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, tt := range []struct {
		name    string
		lines   []string
		run     string // run of the found statement; empty: none
		ignored string
	}{
		{"one", []string{good}, "run-1", ""},
		{"the newest of several", []string{signed(t, newer, mine), good}, "run-2", ""},
		{"nothing", nil, "", ""},
		{"wrong key", []string{signed(t, statement(record()), other)}, "", "no trusted key has signed it"},
		{"a newer one by the wrong key", []string{good, signed(t, newer, other)}, "run-1", "no trusted key has signed it"},
		{"replayed from another commit", []string{signed(t, statement(elsewhere), mine)}, "", "it is about another commit, 777777777777"},
		{"changed after signing", []string{line(forged)}, "", "no trusted key has signed it"},
		{"of another type", []string{line(typed)}, "", "it is an envelope of another kind"},
		{"without a signature", []string{`{"payloadType":"` + payloadType + `","payload":"` + e.Payload + `","signatures":[]}`}, "", "no trusted key has signed it"},
		{"with a field twice", []string{`{"payload":"e30=",` + good[1:]}, "", "it does not have the form that this version writes"},
		{"with a field more", []string{`{"x":1,` + good[1:]}, "", `it is not what this version writes: json: unknown field "x"`},
		{"with spaces", []string{good + " "}, "", "it does not have the form that this version writes"},
		{"with more after it", []string{good + good}, "", "it has more data after its end"},
		{"too large", []string{strings.Repeat("x", maxEnvelope+1)}, "", "it has more than 256 KiB"},
		{"no JSON", []string{"\x1b[31mred", "\x1b[31mred"}, "", "(2 times)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			found, ignored := Find(t.Context(), object("1"), tt.lines, []PublicKey{mine.Public(), mine.Public()})
			switch {
			case found == nil && tt.run != "", found != nil && (found.Statement.Predicate.Run != tt.run || found.Key != mine.String()):
				t.Errorf("found %+v, want %q", found, tt.run)
			case tt.ignored == "" && len(ignored) > 0, tt.ignored != "" && (len(ignored) != 1 || !strings.Contains(ignored[0], tt.ignored)):
				t.Errorf("ignored: %q, want %q", ignored, tt.ignored)
			case found != nil && !AllHold(Judge(*found, facts())):
				t.Errorf("judged: %+v", Judge(*found, facts()))
			}
		})
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(s *Statement, f *Facts)
		state  State // state of the one check that does not hold
		why    string
	}{
		{"another tree", func(_ *Statement, f *Facts) { f.Tree = object("8") }, Fails, "its tree is 888888888888"},
		{"a base that is not below", func(_ *Statement, f *Facts) { f.Base = false }, Fails, "not in its history"},
		{"a gate that failed", func(s *Statement, _ *Facts) { s.Predicate.Gate.Lines[0].ExitCode = 1 }, Fails, "not `make test`"},
		{"no gate", func(s *Statement, _ *Facts) { s.Predicate.Gate.Lines = nil }, Fails, "there was no gate"},
		{"a branch that moved on the remote", func(_ *Statement, f *Facts) { f.Branches["the branch on origin"] = object("8") }, Fails, "the branch on origin is at 888888888888"},
		{"a branch that was asked for and is gone", func(_ *Statement, f *Facts) { f.Branches = nil }, Fails, "there is no such branch"},
		{"a commit whose branch is gone", func(_ *Statement, f *Facts) { f.Branches, f.Named = nil, false }, Unknown, "there is no such branch any more"},
		{"an edited issue", func(_ *Statement, f *Facts) { f.Text = "other" }, Fails, "its text has changed"},
		{"an issue that cannot be read", func(_ *Statement, f *Facts) { f.Text, f.Unread = "", "no token" }, Unknown, "no token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, f := statement(record()), facts()
			tt.change(&s, &f)
			results := Judge(Found{Statement: s, Key: "k"}, f)
			var odd []Result
			for _, r := range results {
				if r.State != Holds {
					odd = append(odd, r)
				}
			}
			if len(odd) != 1 || odd[0].State != tt.state || !strings.Contains(odd[0].Why, tt.why) || AllHold(results) != (tt.state == Unknown) {
				t.Errorf("results %+v", odd)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key.private)
	if err != nil {
		t.Fatal(err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	again, err := ReadKey(keep(t, 0o600, private))
	if err != nil || again.String() != key.String() {
		t.Errorf("PKCS #8: %v, %v", again, err)
	}
	for _, shown := range []string{fmt.Sprintf("%v %+v %#v %s", key, key, key, key)} {
		if strings.Count(shown, key.Public().Fingerprint) != 4 || len(shown) != 4*len(key.String())+3 {
			t.Errorf("it prints as %s", shown)
		}
	}
	if len(key.Secrets()) < 3 {
		t.Errorf("%d texts are secret", len(key.Secrets()))
	}
	pkix, err := x509.MarshalPKIXPublicKey(key.public.key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(key.public.key)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"# ours\n\n" + string(ssh.MarshalAuthorizedKey(public)), string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix})),
	} {
		got, err := ReadPublicKeys(keep(t, 0o644, []byte(text)))
		if err != nil || len(got) != 1 || got[0].Fingerprint != key.String() {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{"": "it contains no key", "ssh-ed25519 x": "cannot be read", string(private): "it is a private key"} {
		if _, err := ReadPublicKeys(keep(t, 0o644, []byte(text))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := ReadKey(keep(t, 0o640, private)); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key of the group: %v", err)
	}
	if _, err := ReadKey(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := ReadKey(keep(t, 0o600, make([]byte, maxKeyFile+1))); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("a large file: %v", err)
	}
}

// Keys of ssh-keygen are read, and other keys are refused with advice.
func TestKeysOfOpenSSH(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, passphrase, want string }{
		{"ed25519", "", ""}, {"ed25519", "secret", "has a passphrase"}, {"ecdsa", "", "ssh-keygen -t ed25519"},
	} {
		path := filepath.Join(t.TempDir(), "key")
		if out, err := exec.Command("ssh-keygen", "-q", "-t", tt.kind, "-N", tt.passphrase, "-f", path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_, err := ReadKey(path)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s %q: %v", tt.kind, tt.passphrase, err)
		}
		if _, err := ReadKey(path + ".pub"); err == nil || tt.kind == "ed25519" && !strings.Contains(err.Error(), "private half") {
			t.Errorf("a public key: %v", err)
		}
		keys, err := ReadPublicKeys(path + ".pub")
		if tt.kind == "ed25519" && (err != nil || len(keys) != 1) || tt.kind != "ed25519" && err == nil {
			t.Errorf("%s: %v, %v", tt.kind, keys, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	key := newKey(f)
	good := signed(f, statement(record()), key)
	f.Add(good)
	f.Add(`{"payloadType":"` + payloadType + `","payload":"e30=","signatures":[{"keyid":"","sig":"AA=="}]}`)
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, line string) {
		s, _, err := open(t.Context(), line, []PublicKey{key.Public()})
		if err == nil && line != good {
			t.Errorf("accepted %q: %+v", line, s)
		}
	})
}

func FuzzDecodeStatement(f *testing.F) {
	text, err := json.Marshal(statement(record()))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"_type":"` + StatementType + `","subject":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := decodeStatement(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(s)
		if err != nil || !bytes.Equal(again, text) {
			t.Errorf("%q is read as %q", text, again)
		}
		_, _ = s.Summary(), s.Limitations()
		_ = Judge(Found{Statement: s}, Facts{})
	})
}

func FuzzParsePublicKeys(f *testing.F) {
	f.Add([]byte("ssh-ed25519 AAAA x\n"))
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parsePublicKeys(text)
		if err == nil && len(keys) == 0 {
			t.Error("neither keys nor an error")
		}
	})
}
