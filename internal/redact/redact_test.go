package redact_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/redact"
)

func TestName(t *testing.T) {
	for _, name := range strings.Fields(`password db_password DB_PASSWORD dbPassword PGPASSWORD passwd passwords user.passwd password1
		password_confirmation pwd dbpwd passphrase secret client_secret clientsecret SecretKey secrets app_secret_2
		token TOKEN session_token sessionToken access-token accesstoken id_token refresh_tokens api_tokens github_token token_value
		authorization Proxy-Authorization cookie Set-Cookie cookies api_key X-API-Key apikey apiKeys APIKey openai.api.key
		private_key privateKey SSH_PRIVATE_KEY private_key_pem aws_secret_access_key SharedAccessKey AccountKey
		credential credentials aws_credentials creds pin PIN user_pin otp totp cvv jwt auth db_pass SMTP_PASS
		csrf_token tokenSecret ` + strings.Repeat("x", 1000) + "_password") {
		if !redact.Name(name) {
			t.Errorf("%s: got no name of a credential, want one", name)
		}
	}
	for _, name := range strings.Fields(`max_tokens maxTokens tokens input_tokens token_count tokenCount tokenizer tokens_used token_limit
		token_type token_url token_endpoint page_token next_page_token nextPageToken continuation_token progressToken progress_token
		first_token cost_per_token password_length password_policy passwordless secret_name cookie_name keyboard monkey key keys
		public_key primary_key sort_key author authors authorization_endpoint authorization_servers secretary bypass passenger first_pass
		pinned spin shipping session_id user name expires_at`) {
		if redact.Name(name) {
			t.Errorf("%s: got the name of a credential, want none", name)
		}
	}
	if redact.Name("") {
		t.Error("no name: got the name of a credential")
	}
}

const key = "hunter2-k3y"

// What has a name or a form of a credential is replaced, wherever it is; JSON stays JSON.
func TestTextHides(t *testing.T) {
	for _, text := range []string{
		`{"db_password":"KEY"}`, `{"session_token":"KEY","a":1}`, `{"pwd": "KEY"}`, `{"private_key":"-----BEGIN\nKEY"}`,
		`{"secret":{"deep":{"value":"KEY"}}}`, `{"api_keys":["x","KEY"]}`, `{"tokens":["KEY"]}`, `{"tokens":"KEY"}`,
		`{"password":[{"value":"KEY"}]}`, `{"pass\u0077ord":"KEY"}`, `{"properties":{"password":"KEY"}}`,
		`{"env":[{"name":"DB_PASSWORD","value":"KEY"}]}`, `{"args":["--db-password","KEY"]}`, `{"API key":"KEY"}`,
		`{"text":"{\"api_key\":\"KEY\",\"a\":1}"}`, `{"a":"x DB_PASSWORD=KEY y"}`, `{"api_key":"\"KEY"}`,
		`{"db_password":{"sensitive":true,"type":"string","value":"KEY"}}`, "{\"token\":\"a\"}\n{\"token\":\"KEY\"}",
		`{"properties":{"password":{"type":"object","password":"KEY"}}}`,
		// cut, or within other text
		`{"api_key":"KEY`, `{"api_key":["a","KEY`, `{"secret":{"a":{"b":"KEY`, `{"text":"{\"token\":\"KEY`, `{"text":"{\"token\":\"a\\\"KEY`,
		`got {"password": "KEY"} back`, `got {"secret":{"a":["}","KEY"]},"b":1} back`, `got {"pin": 0KEY} back`, "got {\"token\":\n \"KEY\"} back",
		`"{\"secret\":{\"a\":\"}\",\"b\":\"KEY\"}}" and more`, `{'password': 'KEY'}`, `map[db_password:KEY other:x]`, `{Password:KEY F:0x1}`,
		"DB_PASSWORD=KEY", "export DB_PASSWORD=\"KEY x\"", `password = 'a KEY'`, "db_password: KEY", "API key: KEY", "private key = KEY",
		"https://example.com/?api_key=KEY&x=1", "user[password]=KEY", "user%5Bpassword%5D=KEY", "Server=a;Password=KEY;User=b", "password => KEY", "pwd:=KEY",
		"mysql --password KEY -h x", "--api-key 'KEY'", "curl -H 'X-API-Key: KEY'", "<db:password>KEY</db:password>", "<Password type='x'>KEY", "PIN: KEY",
		// headers
		"Authorization: Bearer KEY", "authorization: token KEY", "Authorization: Digest username=x, response=KEY", "Cookie: a=1; b=KEY", "GET / HTTP/1.1\r\nSet-Cookie: a=KEY; HttpOnly\r\n\r\n",
		`curl -H "Authorization: ApiKey KEY" x`,
		// tokens that their issuer marks
		"ghp_0123456789abcdefghij0KEY", "x=gho_0123456789abcdefghijKEY", "(github_pat_11ABCDEFG0123456789_KEY)", "sk-proj-0123456789KEY", "xoxb-1234567890-KEY",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.KEY", `{"a":["glpat-0123456789abcdKEY"]}`, "https://me:p@KEY@example.com",
		// forms
		"bearer KEY was refused", "use basic dXNlcjpodW50ZXIyLWszeQ== here", "https://me:KEY@example.com/", "-----BEGIN RSA PRIVATE KEY-----\nKEY\n-----END RSA PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\\nKEY",
	} {
		text := strings.ReplaceAll(strings.ReplaceAll(text, "PRIVATE KEY", "PRIVATE K-Y"), "KEY", key)
		text = strings.ReplaceAll(text, "K-Y", "KEY")
		got := redact.Text(text)
		if strings.Contains(got, key) || strings.Contains(got, "dXNlcjpodW50ZXIy") || !strings.Contains(got, redact.Mark) {
			t.Errorf("%s: got %s, want the credential replaced", text, got)
		}
		if json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
			t.Errorf("%s: got %s, want JSON", text, got)
		}
		if again := redact.Text(got); again != got {
			t.Errorf("%s: got %s and then %s, want no change", text, got, again)
		}
	}
}

// What is no credential stays as it is.
func TestTextShows(t *testing.T) {
	for _, text := range []string{
		`{"max_tokens": 4096, "usage": {"input_tokens":12,"output_tokens":7}, "token_count":3, "tokens": 5}`, `{"tokens":"4,096"}`, `{"tokens":[1,2]}`,
		`{"next_page_token":"abc","progressToken":"p1"}`, `{"properties":{"password":{"type":"string"}},"required":["password"]}`,
		`{"has_password":true,"password":null}`, `{"a": [1.50, 9007199254740993],   "key" : "Q" }`, `{"password_length":12,"token_url":"https://x/y"}`,
		"MAX_TOKENS=4096", "tokens: 12, tokenizer: bpe", "the page token: abc", "page_token=abc", "the secret sauce: ketchup", "password=", "password: true",
		"The basic idea is a key part: tokens are counted.", "the author: me", "monkey=banana", "https://example.com/?q=a@b", "Password:\nUser: bob",
		"a --token", "--token-limit 12", "<tokenizer>bpe</tokenizer>", "basic authentication is on", "cannot get a token: the server is down", "a random ghp_ or sk-, eyJhIjoxfQ", "https://x?a=b@c", "task-12345678901234567890", "GET /a:b HTTP/1.1", "",
	} {
		if got := redact.Text(text); got != text {
			t.Errorf("%s: got %s, want it unchanged", text, got)
		}
	}
}

// The rest of what has a credential stays byte for byte.
func TestTextKeepsTheRest(t *testing.T) {
	for text, want := range map[string]string{
		`{"pin": 1234 , "n": 1.50}`:                                               `{"pin": "[redacted]" , "n": 1.50}`,
		`{"a":"x","secret":{"b":[1]},"c":[true]}`:                                 `{"a":"x","secret":"[redacted]","c":[true]}`,
		`x {"pin": 1234, "a": 1} y`:                                               `x {"pin": "[redacted]", "a": 1} y`,
		`say {\"token\":\"a\",\"b\":1}`:                                           `say {\"token\":\"[redacted]\",\"b\":1}`,
		"DB_PASSWORD=abc DB_HOST=x":                                               "DB_PASSWORD=[redacted] DB_HOST=x",
		"Authorization: Bearer x\nHost: y":                                        "Authorization: [redacted]\nHost: y",
		`{"u":"https://me:pw@example.com/?api_key=abc&x=1"}`:                      `{"u":"https://[redacted]@example.com/?api_key=[redacted]&x=1"}`,
		`["--password","a","b"]`:                                                  `["--password","[redacted]","b"]`,
		`{"headers":[{"name":"Cookie","value":"a"},{"name":"Host","value":"b"}]}`: `{"headers":[{"name":"Cookie","value":"[redacted]"},{"name":"Host","value":"b"}]}`,
	} {
		if got := redact.Text(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestJSONRefusesOther(t *testing.T) {
	for _, text := range []string{`{"a":`, `{"password":`, `x`, `{"a":1}}`, `{"password":"a`} {
		if got, err := redact.JSON([]byte(text), redact.Text); err == nil {
			t.Errorf("%s: got %s, want an error", text, got)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{`{"api_key":"`, `Bearer x`, `\"token\":\"`, `https://a:b@c`, "api_key=", `{"authorization":["a","b"]}`, "--password ", "<pin>", "Cookie: ", `{"tokens":[`, "-----BEGIN PRIVATE KEY-----"} {
		f.Add(seed, "rest")
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		// Quotes end strings and would make the key part of something else.
		clean := strings.NewReplacer(`"`, "", "'", "", "`", "", `\`, "", "\n", "").Replace
		text := fmt.Sprintf(`%s {"api_key":"%s"} %s`, clean(before), key, clean(after))
		if got := redact.Text(text); strings.Contains(got, key) {
			t.Errorf("%q: got %q, want the key gone", text, got)
		}
		for _, text := range []string{before, before + after, fmt.Sprintf(`{%q:%q}`, before, after)} {
			got := redact.Text(text)
			if json.Valid([]byte(text)) != json.Valid([]byte(got)) && json.Valid([]byte(text)) {
				t.Errorf("%q: got %q, want JSON", text, got)
			}
		}
	})
}

// Hostile texts take linear time.
func BenchmarkText(b *testing.B) {
	for name, part := range map[string]string{
		"plain": "nothing to see here, ", "names": `"token":"x",`, "open": `tokens: [`, "nested": `{"tokens":[`, "quotes": `token=\"`, "spaces": "token  =  ", "flags": "--token ", "json": `{"a":"b"} `,
	} {
		text := strings.Repeat(part, 1<<20/len(part))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				redact.Text(text)
			}
		})
	}
}
