package leak

import "regexp"

// shape is how a kind of credential looks.
type shape struct {
	leads []string // what it begins with, at least three bytes that ordinary text seldom has
	of    *class   // what the rest is made of
	least int      // how many of these
	exact bool     // no more of letters, digits and underscores may follow
	// whole is for what is not that simple: it has to match from the lead on. It is tried after the others.
	whole *regexp.Regexp
	// back is how many bytes before the lead belong to it; whole is matched from there.
	back int
}

// longestShape bounds what a pattern looks at, in bytes.
const longestShape = 512

// fits reports whether the credential whose lead of n bytes stands at i is there.
func (s *shape) fits(text []byte, i, n int) bool {
	if i -= s.back; i < 0 {
		return false
	}
	if i > 0 && words[text[i-1]] && words[text[i]] {
		return false // the end of a longer word
	}
	if s.whole != nil {
		return s.whole.Match(text[i:min(len(text), i+longestShape)])
	}
	rest := text[i+n:]
	if len(rest) < s.least {
		return false
	}
	for _, c := range rest[:s.least] {
		if !s.of[c] {
			return false
		}
	}
	return !s.exact || len(rest) == s.least || !words[rest[s.least]]
}

// class is a set of bytes.
type class [256]bool

func classOf(ranges ...string) *class {
	var c class
	for _, r := range ranges {
		for b := int(r[0]); b <= int(r[len(r)-1]); b++ {
			c[b] = true
		}
	}
	return &c
}

//nolint:gochecknoglobals // tables, never written
var (
	words   = classOf("A-Z", "a-z", "0-9", "_")
	letters = classOf("A-Z", "a-z", "0-9")
	capital = classOf("A-Z", "0-9")
	dashed  = classOf("A-Z", "a-z", "0-9", "_", "-")
	dotted  = classOf("A-Z", "a-z", "0-9", "_", "-", ".")
	hexes   = classOf("a-f", "A-F", "0-9")
	bech    = classOf("A-Z", "0-9")
)

// shapes are the credentials that are looked for, by what their issuers say of them. A shape that is not precise would
// hold up honest work: each has a beginning of its own, and a length.
func shapes() []shape {
	return []shape{
		{leads: []string{"AKIA", "ASIA"}, of: capital, least: 16, exact: true}, // AWS
		{leads: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, of: letters, least: 36},
		{leads: []string{"github_pat_"}, of: words, least: 40},
		{leads: []string{ // GitLab: personal, deploy, feed, runner, trigger, job, mail, agent, OAuth, SCIM
			"glpat-", "gldt-", "glft-", "glrt-", "glrtr-", "glptt-", "glcbt-", "glimt-", "glagent-", "gloas-", "glsoat-", "glffct-",
			"GR1348941",
		}, of: dashed, least: 20},
		{leads: []string{"sk-ant-"}, of: dashed, least: 24},
		{leads: []string{"sk-"}, of: dashed, least: 40}, // OpenAI and those who speak like it
		{leads: []string{"xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-", "xoxe-", "xoxe.xoxp-", "xoxe.xoxb-", "xapp-"}, of: dashed, least: 20},
		{leads: []string{"hooks.slack.com/services/"}, whole: regexp.MustCompile(`^hooks\.slack\.com/services/T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{20,}`)},
		{leads: []string{"sk_live_", "rk_live_"}, of: letters, least: 16}, // Stripe
		{leads: []string{"whsec_"}, of: letters, least: 32},
		{leads: []string{"AIza"}, of: dashed, least: 35, exact: true}, // Google
		{leads: []string{"GOCSPX-"}, of: dashed, least: 28},
		{leads: []string{"ya29."}, of: dotted, least: 60},
		{leads: []string{"npm_"}, of: letters, least: 36, exact: true},
		{leads: []string{"pypi-AgEIcHlwaS5vcmc", "pypi-AgENdGVzdC5weXBpLm9yZw"}, of: dashed, least: 50},
		{leads: []string{"rubygems_"}, of: hexes, least: 48, exact: true},
		{leads: []string{"hf_"}, of: letters, least: 34}, // Hugging Face
		{leads: []string{"gsk_"}, of: letters, least: 52, exact: true},
		{leads: []string{"dckr_pat_", "dckr_oat_"}, of: dashed, least: 27},
		{leads: []string{"SG."}, whole: regexp.MustCompile(`^SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`)}, // SendGrid
		{leads: []string{"dop_v1_", "doo_v1_", "dor_v1_"}, of: hexes, least: 64},                         // DigitalOcean
		{leads: []string{"shpat_", "shpca_", "shppa_", "shpss_"}, of: hexes, least: 32},                  // Shopify
		{leads: []string{"hvs.", "hvb."}, of: dashed, least: 90},                                         // Vault
		{leads: []string{"lin_api_"}, of: letters, least: 40},
		{leads: []string{"glsa_"}, whole: regexp.MustCompile(`^glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}`)}, // Grafana
		{leads: []string{"tskey-auth-", "tskey-api-", "tskey-client-"}, of: dashed, least: 20},
		{leads: []string{"AccountKey="}, whole: regexp.MustCompile(`^AccountKey=[A-Za-z0-9+/]{86}==`)}, // Azure storage
		{leads: azure(), whole: regexp.MustCompile(`^[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?:[^A-Za-z0-9_~.-]|$)`), back: 3},
		{leads: []string{"AGE-SECRET-KEY-1", "AGE-SECRET-KEY-PQ-1"}, of: bech, least: 58},
		{leads: []string{"-----BEGIN", "---- BEGIN"}, whole: regexp.MustCompile(`^----(?:-BEGIN| BEGIN SSH2)[ +][A-Z0-9 +]*PRIVATE[ +]KEY(?:[ +]BLOCK)? ?----`)},
		{leads: []string{"PuTTY-User-Key-File-"}, whole: regexp.MustCompile(`^PuTTY-User-Key-File-[23]: `)},
		{leads: []string{`"d":`, `"d" :`}, whole: regexp.MustCompile(`^"d" ?: ?"[A-Za-z0-9_-]{43,}"`)}, // a private JSON Web Key
	}
}

// azure are the leads of an Entra ID application's secret: a digit before "Q~".
func azure() []string {
	var leads []string
	for d := byte('0'); d <= '9'; d++ {
		leads = append(leads, string([]byte{d, 'Q', '~'}))
	}
	return leads
}
