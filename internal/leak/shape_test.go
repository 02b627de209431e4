package leak

import (
	"encoding/base64"
	"strings"
	"testing"
)

// The samples are concatenated: this file must not look as if it contained secrets.

const (
	randomText = "k3Jf9QpZx7Lm2Vb8Nc4Rt6Yw1Hd5Sg0AeUoIiPqTzXvCnBmKlJhGfDsaWqErTyUi"
	randomHex  = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	dashes     = "-----"
)

// x returns n random-looking characters.
func x(n int) string { return (randomText + randomText + randomText)[:n] }

// same repeats a string.
func same(text string, n int) string { return strings.Repeat(text, n) }

// pem returns a private key of a kind, with text before its digits, and with the given line ends.
func pem(kind, before, lineEnd string) string {
	return dashes + "BEGIN " + kind + dashes + lineEnd + before + x(64) + lineEnd + x(20) + "=" + lineEnd + dashes + "END " + kind + dashes
}

func credentials() []string {
	return []string{
		"AKIA" + "ABCDEFGH12345678", "ghs_" + x(36), "github_pat_" + x(50), "glpat-" + x(20), "gldt-" + x(20), "glft-" + x(20), "glrt-" + x(20), "glptt-" + x(40),
		"sk-ant-api03-" + x(60), "sk-proj-" + x(60), "sk-or-v1-" + randomHex, "xoxb-1234567890-" + x(24), "xoxc-1234567890-" + randomHex, "xapp-" + "1-A0123456789-1234567890-" + x(40),
		"https://hooks.slack.com/services/" + "T01234567/B01234567/" + x(24), "sk_" + "live_" + x(24), "whsec_" + x(32), "AIza" + x(35), "GOCSPX-" + x(28),
		"npm_" + x(36), "pypi-AgEIcHlwaS5vcmc" + x(60), "hf_" + x(34), "dckr_pat_" + x(27), "SG." + x(22) + "." + x(43),
		"AccountKey=" + x(86) + "==;", "abc8Q~" + x(34), "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE",
		"xai-" + x(80), "pplx-" + x(48), "r8_" + x(37), "dapi" + randomHex[:32], "dapi" + randomHex[:32] + "-2", "ATATT3" + "xFfGF0" + x(174) + "=" + randomHex[:8],
		"sntrys_" + "eyJpYXQiO" + x(80) + "==_" + x(43), "sntryu_" + randomHex, "ntn_" + "12345678901" + x(35), "figd_" + x(40), "sbp_" + randomHex[:40],
		"PMAK-" + randomHex[:24] + "-" + randomHex[:34], "bot=123456789:AA" + x(33), "https://api.telegram.org/bot1234567890:AA" + x(33) + "/getMe",
		"https://discord.com/api/webhooks/" + "123456789012345678/" + x(68), "https://canary.discordapp.com/api/v10/webhooks/" + "1234567890123456789/" + x(68),
		"postgres://admin:" + "S3cr3tP4ss@db.example.com/prod", "redis://:" + "k3Jf9QpZx7@10.0.0.1:6379/0", "mongodb+srv://app:" + "k3Jf%409QpZ@cluster0.mongodb.net",
		pem("PRIVATE KEY", "", "\n"), pem("RSA PRIVATE KEY", "", `\n`), pem("EC PRIVATE KEY", "", `\r\n`), pem("OPENSSH PRIVATE KEY", "", "\" +\n\t\""),
		pem("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,"+strings.ToUpper(randomHex[:32])+"\n\n", "\n"),
		pem("PGP PRIVATE KEY BLOCK", "Version: GnuPG v2\n\n", "\n"), "---- BEGIN " + "SSH2 ENCRYPTED PRIVATE KEY ----\nComment: \"a key\"\n" + x(64),
		"PuTTY-User-" + "Key-File-3: ssh-ed25519",
	}
}

func TestShapes(t *testing.T) {
	t.Parallel()
	finder := New(nil)
	for _, text := range credentials() {
		if !finder.In("x = '" + text + "'\n") {
			t.Errorf("%s: not found", text)
		}
		if !finder.In(base64.StdEncoding.EncodeToString([]byte("{" + text + "}"))) {
			t.Errorf("%s: not found in base64", text)
		}
	}
}

// A word right before a credential does not hide it.
func TestCredentialsWithinWords(t *testing.T) {
	t.Parallel()
	finder := New(nil)
	for _, text := range []string{
		`"\n` + "ghp_" + x(36) + `"`, `"\t` + "AKIA" + `ABCDEFGH12345678"`, `'a\r\n` + "hf_" + x(34) + `'`, `"a\\n` + "npm_" + x(36) + `"`,
		"my_" + "ghp_" + x(36), "my" + "ghp_" + x(36), "old_" + "hf_" + x(34), "old" + "glpat-" + x(20), "a_" + "xoxb-1234567890-" + x(24), "x" + "sk-ant-api03-" + x(60),
		"key" + "github_pat_" + x(50), "%0A" + "hf_" + x(34), "is_" + "sk-proj-" + x(60),
	} {
		if !finder.In(text) {
			t.Errorf("%q: not found", text)
		}
	}
}

// Examples of credentials, and text that looks like one by chance, do not stop a run.
func TestNoCredentials(t *testing.T) {
	t.Parallel()
	finder := New(nil)
	for _, text := range []string{
		"AKIA and more", "task-" + x(50), "ghp_short", dashes + "BEGIN CERTIFICATE" + dashes, dashes + "BEGIN PUBLIC KEY" + dashes, `<path d="M0 0"/>`, `"d":"` + x(20) + `"`,
		"risk-free", "hf_model_name_that_is_quite_long_for_a_name", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0." + x(43), "sha512-" + x(86) + "==",
		// Programs that read keys, and their documentation.
		`if strings.HasPrefix(text, "` + dashes + "BEGIN RSA PRIVATE KEY" + dashes + `") {` + "\n\treturn x509.ParsePKCS8PrivateKey(block.Bytes) // of crypto/x509\n}",
		"The file begins with `" + dashes + "BEGIN PRIVATE KEY" + dashes + "`.\nWhat follows is in base64.",
		`"` + dashes + "BEGIN EC PRIVATE KEY" + dashes + `",` + "\n" + `"` + dashes + "BEGIN RSA PRIVATE KEY" + dashes + `"`,
		dashes + "BEGIN PRIVATE KEY" + dashes + "\n...\n" + dashes + "END PRIVATE KEY" + dashes + "\n" + x(60), "---- BEGIN " + "SSH2 ENCRYPTED PRIVATE KEY ----",
		// Placeholders.
		"AKIA" + "IOSFODNN7EXAMPLE", "ghp_" + same("x", 36), "ghp_" + same("a", 36), "glpat-" + same("X", 20), "tskey-" + "auth-" + same("x", 20), "SG." + same("x", 22) + "." + same("x", 43),
		"sk-ant-api03-" + same("x", 80), "sk-" + same("X", 48), "xoxb-123456789012-" + same("x", 24), "hf_" + same("a", 34), "whsec_" + same("0", 32), "npm_" + "ExampleToken" + x(24),
		"https://hooks.slack.com/services/" + "T00000000/B00000000/" + same("X", 24), "https://hooks.slack.com/services/" + "T01234567/B01234567/" + same("x", 24),
		"dapi" + same("0", 32), "https://discord.com/api/webhooks/" + "123456789012345678/" + same("x", 68), "123456789:AA" + same("x", 33),
		// Other things.
		`{"d": "` + randomHex + `"}`, ".sk-folding-cube-wrapper--is-loading-and-visible-now", "sk-circle-bounce-delay-animation-container-wrapper-element-2",
		"task-ant-design-component-library-for-tables", "kebab-sk-" + same("abcdefgh", 6), "github.com:AAAAB3NzaC1yc2EAAAADAQABAAABgQC7", "12:AA" + x(33), "123456789:AA" + x(50),
		"data-xai-" + same("word-", 20), "adapi" + randomHex[:32] + "e", "discord.com/api/webhooks/{id}/{token}",
		// URLs without a password, and templates of URLs with one.
		"https://github.com/ralph-pool/ralph", "ssh://git@github.com:22/a", "http://localhost:8080/a@b", "https://registry.example.com:5000/team@sha256:0",
		"postgres://user:password@localhost/db", "postgres://user:MyPassw0rd@db/x", "postgres://user:${DB_PASS1}@db/x", "https://%s:%s12345678@host", "https://user:{{ .Key1 }}@host",
		"https://user:$(cat key1)@host", "https://oauth2:" + "YOUR-KEY-123@host", "https://user:xxxxxxxxxx1@host", "https://user:********@host", "postgres://user:postgres@db", "http://a:12345678@b", "http://user:S3cret@b",
		"git clone https://user:longlonglong@host/x", "at https://a.example: see b1c2d3e4@example.com",
	} {
		if finder.In(text) {
			t.Errorf("%s: found", text)
		}
	}
}
