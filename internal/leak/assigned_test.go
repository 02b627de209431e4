package leak

import (
	"slices"
	"testing"
)

// Values of lines NAME=VALUE and NAME: VALUE are secrets by the same rules as those of variables.
func TestAssigned(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct{ env, other []string }{
		"DB_PASSWORD=hunter2-hunter2\n":                        {[]string{"hunter2-hunter2"}, []string{"hunter2-hunter2"}},
		"export API_TOKEN = \"one two three 4\" # comment":     {[]string{"one two three 4"}, nil},
		"  'api-key': 'abc123def456',\r\n":                     {[]string{"abc123def456"}, []string{"abc123def456"}},
		"apiKey: abc123def456":                                 {[]string{"abc123def456"}, []string{"abc123def456"}},
		"dbPass=abc123def456 # note":                           {[]string{"abc123def456"}, []string{"abc123def456"}},
		"ACCESS_KEY=ab#c123def456":                             {[]string{"ab#c123def456"}, []string{"ab#c123def456"}},
		"PASSWORD=postgres":                                    {},
		"PASSWORD=1234567890":                                  {},
		"PASSWORD=a1b2c3":                                      {},
		"REGION=eu-central-1\nNODE_ENV=development-2":          {},
		"KEY_FILE=./certs/key1.pem\nTOKEN_PATH=/run/secrets/1": {},
		"TOKEN_URL=https://auth.example.com/token/2":           {},
		"DATABASE_URL=postgres://app:hunter2-hunter2@db/app1":  {[]string{"hunter2-hunter2"}, []string{"hunter2-hunter2"}},
		"API_TOKEN=${OTHER_TOKEN_1}":                           {},
		"# API_TOKEN=hunter2-hunter2":                          {},
		"token: getToken1(here)":                               {[]string{"getToken1(here)"}, nil},
		"const token = await readToken1;":                      {},
		"COOKIE=Zm9vYmFyYmF6cXV4MTIzNDU2":                      {[]string{"Zm9vYmFyYmF6cXV4MTIzNDU2"}, nil},
		"COOKIE=0123456789abcdef0123456789abcdef":              {[]string{"0123456789abcdef0123456789abcdef"}, nil},
		"integrity: sha512-Zm9vYmFyYmF6cXV4MTIzNDU2":           {[]string{"sha512-Zm9vYmFyYmF6cXV4MTIzNDU2"}, nil},
	} {
		if got := Assigned([]byte(text), true); !slices.Equal(got, c.env) {
			t.Errorf("%q: %q, want %q", text, got, c.env)
		}
		if got := Assigned([]byte(text), false); !slices.Equal(got, c.other) {
			t.Errorf("not of variables: %q: %q, want %q", text, got, c.other)
		}
	}
}
