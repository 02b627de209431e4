package leak

import "regexp"

// shapes returns the formats of known credentials, as documented by their issuers. Each is precise, with a prefix and a
// length: a loose format would block honest work.
func shapes() []shape {
	github := []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}
	return []shape{
		{leads: []string{"AKIA", "ASIA"}, of: capital, least: 16, exact: true}, // AWS
		{leads: github, of: letters, least: 36},
		{leads: github, of: letters, least: 36, exact: true, inside: true},
		{leads: []string{"github_pat_"}, of: words, least: 40, inside: true},
		{leads: []string{ // GitLab: personal, runner, trigger, job, mail, agent, OAuth, SCIM, feature flags
			"glpat-", "glrtr-", "glptt-", "glcbt-", "glimt-", "glagent-", "gloas-", "glsoat-", "glffct-",
		}, of: dashed, least: 20, inside: true},
		{leads: []string{"gldt-", "glft-", "glrt-", "GR1348941"}, of: dashed, least: 20}, // deploy, feed, runner
		{leads: []string{"sk-ant-"}, of: dashed, least: 24},
		{leads: []string{"sk-ant-"}, of: dashed, least: 24, mixed: true, inside: true},
		{leads: []string{"sk-or-v1-"}, of: lowHex, least: 64, inside: true}, // OpenRouter
		{leads: []string{"sk-"}, of: dashed, least: 40, mixed: true},        // OpenAI and compatible services
		{leads: []string{"xai-"}, of: words, least: 80},
		{leads: []string{"pplx-"}, of: letters, least: 48},                                       // Perplexity
		{leads: []string{"r8_"}, of: letters, least: 37, exact: true},                            // Replicate
		{leads: []string{"dapi"}, of: lowHex, least: 32, exact: true},                            // Databricks
		{leads: []string{"ATATT3"}, of: anyCode, least: 160},                                     // Atlassian
		{leads: []string{"sntrys_"}, of: anyCode, least: 60, inside: true},                       // Sentry: of an organisation
		{leads: []string{"sntryu_"}, of: lowHex, least: 64, inside: true},                        // Sentry: of a person
		{leads: []string{"ntn_"}, of: letters, least: 40},                                        // Notion
		{leads: []string{"figd_"}, of: dashed, least: 40},                                        // Figma
		{leads: []string{"sbp_"}, of: lowHex, least: 40, exact: true},                            // Supabase
		{leads: []string{"PMAK-"}, whole: regexp.MustCompile(`^PMAK-[0-9a-f]{24}-[0-9a-f]{34}`)}, // Postman
		{
			leads: []string{"discord.com/api/", "discordapp.com/api/"},
			whole: regexp.MustCompile(`^discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{17,20}/[A-Za-z0-9_-]{60,}`),
		},
		{
			leads:  []string{":AA"},
			whole:  regexp.MustCompile(`^\d{8}:AA[A-Za-z0-9_-]{33}(?:[^A-Za-z0-9_-]|$)`),
			back:   8,
			inside: true,
		}, // Telegram
		{leads: []string{"://"}, test: password},
		{
			leads: []string{"xoxa-", "xoxb-", "xoxc-", "xoxp-", "xoxr-", "xoxs-", "xoxe-", "xoxe.xoxp-", "xoxe.xoxb-", "xapp-"},
			of:    dashed,
			least: 20,
		},
		{
			leads: []string{"hooks.slack.com/services/"},
			whole: regexp.MustCompile(`^hooks\.slack\.com/services/T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{20,}`),
		},
		{leads: []string{"sk_live_", "rk_live_"}, of: letters, least: 16, inside: true}, // Stripe
		{leads: []string{"whsec_"}, of: letters, least: 32, inside: true},
		{leads: []string{"AIza"}, of: dashed, least: 35, exact: true}, // Google
		{leads: []string{"GOCSPX-"}, of: dashed, least: 28, inside: true},
		{leads: []string{"ya29."}, of: dotted, least: 60},
		{leads: []string{"npm_"}, of: letters, least: 36, exact: true},
		{leads: []string{"pypi-AgEIcHlwaS5vcmc", "pypi-AgENdGVzdC5weXBpLm9yZw"}, of: dashed, least: 50},
		{leads: []string{"rubygems_"}, of: hexes, least: 48, exact: true, inside: true},
		{leads: []string{"hf_"}, of: letters, least: 34}, // Hugging Face
		{leads: []string{"gsk_"}, of: letters, least: 52, exact: true},
		{leads: []string{"dckr_pat_", "dckr_oat_"}, of: dashed, least: 27, inside: true},
		{leads: []string{"SG."}, whole: regexp.MustCompile(`^SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`)}, // SendGrid
		{leads: []string{"dop_v1_", "doo_v1_", "dor_v1_"}, of: hexes, least: 64, inside: true},           // DigitalOcean
		{leads: []string{"shpat_", "shpca_", "shppa_", "shpss_"}, of: hexes, least: 32, inside: true},    // Shopify
		{leads: []string{"hvs.", "hvb."}, of: dashed, least: 90},                                         // Vault
		{leads: []string{"lin_api_"}, of: letters, least: 40, inside: true},
		{leads: []string{"glsa_"}, whole: regexp.MustCompile(`^glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}`)}, // Grafana
		{leads: []string{"tskey-auth-", "tskey-api-", "tskey-client-"}, of: dashed, least: 20, inside: true},
		{
			leads: []string{"AccountKey="},
			whole: regexp.MustCompile(`^AccountKey=[A-Za-z0-9+/]{86}==`),
		}, // Azure storage
		{
			leads: []string{"Q~"},
			whole: regexp.MustCompile(`^[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?:[^A-Za-z0-9_~.-]|$)`),
			back:  4,
		}, // Entra ID
		{leads: []string{"AGE-SECRET-KEY-1", "AGE-SECRET-KEY-PQ-1"}, of: bech, least: 58},
		{leads: []string{"-----BEGIN", "---- BEGIN"}, test: privateKey},
		{leads: []string{"PuTTY-User-Key-File-"}, whole: regexp.MustCompile(`^PuTTY-User-Key-File-[23]: `)},
	}
}
