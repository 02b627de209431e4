package leak_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/leak"
)

// A random token counts whatever the format of its file, and nothing else does.
func TestTokens(t *testing.T) {
	t.Parallel()
	const key, hex, mixed = "k3Jf9QpZx7Lm2Vb8Nc4Rt6Yw", "9f86d081884c7d659a2feaa0c55ad015", "3Wc+Kb/0uP9/hD2sLq81vTzX5nEy=="
	for text, want := range map[string][]string{
		`{"api_key": "` + key + `", "other": "` + hex + `"}`:            {key, hex},
		"machine example.com login me password " + key + "\n":           {key},
		"//registry.example.com/:_authToken=" + key + "\n":              {key},
		"db.example.com:5432:app:me:" + hex + "\n":                      {hex},
		"<secret>" + key + "</secret>":                                  {key},
		"key  " + mixed + "\r\n":                                        {"hD2sLq81vTzX5nEy==", mixed},
		key:                                                             {key},
		"a=" + key + "\nb=" + key:                                       {key},
		"https://hooks.example.com/services/T0/" + key:                  {key, "com/services/T0/" + key},
		"id: 41887acf-105d-470a-b930-efc96c48498d\n":                    {"41887acf-105d-470a-b930-efc96c48498d"},
		"-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(key, 2) + "\n": {strings.Repeat(key, 2)},
		"-----BEGIN CERTIFICATE-----\n" + strings.Repeat(key, 2) + "\n-----END CERTIFICATE-----\n" + hex:            {hex},
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2kq8Zx7Lm2Vb8Nc4Rt6Yw1Hd5Sg0AeUoIiPqTz me\n":                         nil,
		`"integrity": "sha512-` + key + key + `=="`:                                                                 nil,
		"example.com/mod v0.0.0-20181228230101-89fcab3d43de h1:" + key + key + "=\n":                                nil,
		"eyJhbGciOiJIUzI1NiJ9." + key:                                                                               {key},
		"https://example.com/modern-go/reflect2/TestPort443IsForTLS?v=Error404NotFound":                             nil,
		"conn-refused-killed120s x1esigned-off-by ParsePKCS8PrivateKey node-v18-linux-x64-r2":                       nil,
		"machine example.com login me password p@ss!W0rd#24$xY\n":                                                   {"p@ss!W0rd#24$xY"},
		`{"db": {"pass": "Xk9#vLq2mWp7"}, "to": "me@example.com"}`:                                                  {"Xk9#vLq2mWp7"},
		"db.example.com:5432:app:me:Q7*w&Zt!3e^Lb9\n<p>K!4n@8Vz#1Qm</p>":                                            {"Q7*w&Zt!3e^Lb9", "K!4n@8Vz#1Qm"},
		"git@Host1.example.com:Me2/Repo3 actions/checkout@v4.1.2-Rc1 User%20Name%2FA1%3Db2C3 a1&&B2||c3D":           nil,
		`"^[A-Za-z0-9]+$" $HOME1/Bin2 %02X%08xAb $1$2$A3 lodash@^4.17.21 *Bold1* py#L175-L183 SomeName@Version2Of3`: nil,
		"2026-11-30T20-31-21Z 20261130203121 DATABASE_HOST_OF_TESTS_2 aaaaaaaaaaaaaaaaaaaaaa":                       nil,
		"/usr/share/doc/python3-setuptools/README utf8mb4_unicode_ci 1234567890123456789":                           nil,
	} {
		if got := leak.Tokens([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
