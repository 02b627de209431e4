package leak

import "regexp"

// shapes returns the formats of known credentials, as documented by their issuers. Each is precise, with a prefix and a
// length: a loose format would block honest work.
func shapes() []shape {
	github := []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}
	return []shape{
		{leads: []string{"AKIA", "ASIA"}, chars: capital, minLength: 16, exact: true}, // AWS
		{leads: github, chars: letters, minLength: 36},
		{leads: github, chars: letters, minLength: 36, exact: true, withinWord: true},
		{leads: []string{"github_pat_"}, chars: words, minLength: 40, withinWord: true},
		{leads: []string{ // GitLab: personal, runner, trigger, job, mail, agent, OAuth, SCIM, feature flags
			"glpat-", "glrtr-", "glptt-", "glcbt-", "glimt-", "glagent-", "gloas-", "glsoat-", "glffct-",
		}, chars: dashed, minLength: 20, withinWord: true},
		{leads: []string{"gldt-", "glft-", "glrt-", "GR1348941"}, chars: dashed, minLength: 20}, // deploy, feed, runner
		{leads: []string{"sk-ant-"}, chars: dashed, minLength: 24},
		{leads: []string{"sk-ant-"}, chars: dashed, minLength: 24, mixed: true, withinWord: true},
		{leads: []string{"sk-or-v1-"}, chars: lowHex, minLength: 64, withinWord: true}, // OpenRouter
		{leads: []string{"sk-"}, chars: dashed, minLength: 40, mixed: true},            // OpenAI and compatible services
		{leads: []string{"xai-"}, chars: words, minLength: 80},
		{leads: []string{"pplx-"}, chars: letters, minLength: 48},                                  // Perplexity
		{leads: []string{"r8_"}, chars: letters, minLength: 37, exact: true},                       // Replicate
		{leads: []string{"dapi"}, chars: lowHex, minLength: 32, exact: true},                       // Databricks
		{leads: []string{"ATATT3"}, chars: anyCode, minLength: 160},                                // Atlassian
		{leads: []string{"sntrys_"}, chars: anyCode, minLength: 60, withinWord: true},              // Sentry: of an organisation
		{leads: []string{"sntryu_"}, chars: lowHex, minLength: 64, withinWord: true},               // Sentry: of a person
		{leads: []string{"ntn_"}, chars: letters, minLength: 40},                                   // Notion
		{leads: []string{"figd_"}, chars: dashed, minLength: 40},                                   // Figma
		{leads: []string{"sbp_"}, chars: lowHex, minLength: 40, exact: true},                       // Supabase
		{leads: []string{"PMAK-"}, pattern: regexp.MustCompile(`^PMAK-[0-9a-f]{24}-[0-9a-f]{34}`)}, // Postman
		{
			leads:   []string{"discord.com/api/", "discordapp.com/api/"},
			pattern: regexp.MustCompile(`^discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{17,20}/[A-Za-z0-9_-]{60,}`),
		},
		{
			leads:       []string{":AA"},
			pattern:     regexp.MustCompile(`^\d{8}:AA[A-Za-z0-9_-]{33}(?:[^A-Za-z0-9_-]|$)`),
			bytesBefore: 8,
			withinWord:  true,
		}, // Telegram
		{leads: []string{"://"}, test: password},
		{
			leads:     []string{"xoxa-", "xoxb-", "xoxc-", "xoxp-", "xoxr-", "xoxs-", "xoxe-", "xoxe.xoxp-", "xoxe.xoxb-", "xapp-"},
			chars:     dashed,
			minLength: 20,
		},
		{
			leads:   []string{"hooks.slack.com/services/"},
			pattern: regexp.MustCompile(`^hooks\.slack\.com/services/T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{20,}`),
		},
		{leads: []string{"sk_live_", "rk_live_"}, chars: letters, minLength: 16, withinWord: true}, // Stripe
		{leads: []string{"whsec_"}, chars: letters, minLength: 32, withinWord: true},
		{leads: []string{"AIza"}, chars: dashed, minLength: 35, exact: true}, // Google
		{leads: []string{"GOCSPX-"}, chars: dashed, minLength: 28, withinWord: true},
		{leads: []string{"ya29."}, chars: dotted, minLength: 60},
		{leads: []string{"npm_"}, chars: letters, minLength: 36, exact: true},
		{leads: []string{"pypi-AgEIcHlwaS5vcmc", "pypi-AgENdGVzdC5weXBpLm9yZw"}, chars: dashed, minLength: 50},
		{leads: []string{"rubygems_"}, chars: hexes, minLength: 48, exact: true, withinWord: true},
		{leads: []string{"hf_"}, chars: letters, minLength: 34}, // Hugging Face
		{leads: []string{"gsk_"}, chars: letters, minLength: 52, exact: true},
		{leads: []string{"dckr_pat_", "dckr_oat_"}, chars: dashed, minLength: 27, withinWord: true},
		{leads: []string{"SG."}, pattern: regexp.MustCompile(`^SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`)},       // SendGrid
		{leads: []string{"dop_v1_", "doo_v1_", "dor_v1_"}, chars: hexes, minLength: 64, withinWord: true},        // DigitalOcean
		{leads: []string{"shpat_", "shpca_", "shppa_", "shpss_"}, chars: hexes, minLength: 32, withinWord: true}, // Shopify
		{leads: []string{"hvs.", "hvb."}, chars: dashed, minLength: 90},                                          // Vault
		{leads: []string{"lin_api_"}, chars: letters, minLength: 40, withinWord: true},
		{leads: []string{"glsa_"}, pattern: regexp.MustCompile(`^glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}`)}, // Grafana
		{leads: []string{"tskey-auth-", "tskey-api-", "tskey-client-"}, chars: dashed, minLength: 20, withinWord: true},
		{
			leads:   []string{"AccountKey="},
			pattern: regexp.MustCompile(`^AccountKey=[A-Za-z0-9+/]{86}==`),
		}, // Azure storage
		{
			leads:       []string{"Q~"},
			pattern:     regexp.MustCompile(`^[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?:[^A-Za-z0-9_~.-]|$)`),
			bytesBefore: 4,
		}, // Entra ID
		{leads: []string{"AGE-SECRET-KEY-1", "AGE-SECRET-KEY-PQ-1"}, chars: bech, minLength: 58},
		{leads: []string{"-----BEGIN", "---- BEGIN"}, test: privateKey},
		{leads: []string{"PuTTY-User-Key-File-"}, pattern: regexp.MustCompile(`^PuTTY-User-Key-File-[23]: `)},
	}
}
