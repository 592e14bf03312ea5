package redact

import (
	"slices"
	"strings"
)

// kind classifies a name.
type kind int

const (
	open   kind = iota
	secret      // a credential of any type
	tokens      // credentials if texts, an amount if numbers
)

// Name reports whether a header, member, parameter or variable with this name holds a credential. Names are split
// into words: db_password, DB-PASSWORD and dbPassword are equal. Token counts, list cursors, and properties of
// credentials such as password_length or token_url are not credentials.
func Name(name string) bool { return kindOf(name, 0) == secret }

// longestName limits the bytes examined of a name; its end counts.
const longestName = 64

// kindOf classifies a name. The words before from are only context, such as "page" in "page token".
func kindOf(name string, from int) kind {
	if cut := len(name) - longestName; cut > 0 {
		name, from = name[cut:], max(0, from-cut)
	}
	if !hasStem(name[from:]) {
		return open
	}
	words := split(name)
	if len(words) == 0 || len(words) > 1 && slices.Contains(describing, words[len(words)-1].text) {
		return open
	}
	found := open
	for i, w := range words {
		before := ""
		if i > 0 {
			before = words[i-1].text
		}
		if w.at < from {
			continue
		}
		switch kindOfWord(w.text, before, len(words) == 1) {
		case secret:
			return secret
		case tokens:
			found = tokens
		}
	}
	return found
}

// word is a lower-case word of a name and its position.
type word struct {
	text string
	at   int
}

// split returns the words of a name without trailing digits.
func split(name string) (words []word) {
	begin := 0
	for i := 0; i <= len(name); i++ {
		inside := i < len(name) && isLetter(name[i])
		if inside && !(i > begin && humps(name, i)) {
			continue
		}
		if text := strings.TrimRight(strings.ToLower(name[begin:i]), "0123456789"); text != "" {
			words = append(words, word{text, begin})
		}
		if begin = i; !inside {
			begin++
		}
	}
	return words
}

// humps reports whether a word begins at i, as at K in apiKey and in APIKey.
func humps(name string, i int) bool {
	return isUpper(name[i]) && (!isUpper(name[i-1]) || i+1 < len(name) && 'a' <= name[i+1] && name[i+1] <= 'z')
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// isLetter reports whether c belongs to a word: letters, digits, and parts of characters beyond ASCII.
func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || isUpper(c) || '0' <= c && c <= '9' || c >= 0x80
}

var (
	// describing are final words that denote a property of a credential.
	describing = strings.Fields("length len count limit max min size budget used usage policy type types url uri endpoint " +
		"endpoints name names ids ttl expiry expires expiration at in age enabled required supported file path method " +
		"methods algorithm status strength hint format version domain rate price cost provider store manager servers scopes")
	// endings are words that denote a credential, also at the end of a longer word: pgpassword, clientsecret.
	endings = strings.Fields("password passwd passphrase passcode pwd secret credential cred authorization cookie " +
		"apikey privatekey secretkey accesskey")
	whole = strings.Fields("pin otp totp cvv cvc jwt") // only as whole words, not as in spin
	// keys are words before "key", and passes words before "pass".
	keys   = strings.Fields("api private access secret signing encryption master session ssh account shared client license")
	passes = strings.Fields("db database user admin root login smtp ftp proxy mysql postgres redis")
	// cursors are words before "token" that make it a list position or a piece of text.
	cursors = strings.Fields("page next nextpage progress continuation sync resume cursor previous prev start end first last " +
		"eos bos pad unk stop special mask per each input output prompt completion")
	// bearers are words before "tokens" that make them credentials.
	bearers = strings.Fields("access refresh auth api bearer session id csrf oauth device push personal security")
)

// kindOfWord classifies a word of a name using the preceding word.
func kindOfWord(text, before string, alone bool) kind {
	single := strings.TrimSuffix(text, "s")
	ends := func(end string) bool { return strings.HasSuffix(single, end) }
	switch {
	case slices.ContainsFunc(endings, ends), slices.Contains(whole, single), alone && text == "auth",
		single == "key" && slices.Contains(keys, before), text == "pass" && slices.Contains(passes, before):
		return secret
	case !ends("token"):
		return open
	}
	if joined := strings.TrimSuffix(single, "token"); joined != "" {
		before = joined // accesstoken
	}
	switch {
	case single == text && slices.Contains(cursors, before):
		return open
	case single == text, slices.Contains(bearers, before):
		return secret
	}
	return tokens
}

// stems are the letter sequences that credentials and their names contain, by first letter.
var stems = func() (by [256][]string) {
	for stem := range strings.FieldsSeq("auth basic bearer cooki cred cvc cvv jwt key otp pass pin pwd secret token") {
		by[stem[0]] = append(by[stem[0]], stem)
	}
	return by
}()

// hasStem reports whether a text may hold a credential or its name. It is a fast filter for most texts.
func hasStem(text string) bool {
	for i := range len(text) {
		for _, stem := range stems[text[i]|0x20] { // in lower case
			if end := i + len(stem); end <= len(text) && strings.EqualFold(text[i:end], stem) {
				return true
			}
		}
	}
	return false
}
