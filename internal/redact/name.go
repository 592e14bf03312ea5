package redact

import (
	"slices"
	"strings"
)

// kind says what a name stands for.
type kind int

const (
	open   kind = iota
	secret      // a credential, in whatever form
	tokens      // credentials if they are texts, an amount if they are numbers
)

// Name reports whether a header, member, parameter or variable of that name holds a credential. Words count, however
// they are joined: db_password, DB-PASSWORD and dbPassword. Amounts of tokens, cursors of lists and what only describes
// a credential, such as password_length or token_url, are none.
func Name(name string) bool { return kindOf(name, 0) == secret }

// longestName bounds what is read of a name, in bytes. Its end counts.
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

// word is a word of a name in lower case, and where it begins.
type word struct {
	text string
	at   int
}

// split returns the words of a name, without digits at their ends.
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

// humps reports whether a word begins in the middle of others: at K in apiKey and in APIKey.
func humps(name string, i int) bool {
	return isUpper(name[i]) && (!isUpper(name[i-1]) || i+1 < len(name) && 'a' <= name[i+1] && name[i+1] <= 'z')
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// isLetter reports whether c belongs to a word: letters, digits, and parts of characters beyond ASCII.
func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || isUpper(c) || '0' <= c && c <= '9' || c >= 0x80
}

var (
	// describing are last words of names that tell something about a credential.
	describing = strings.Fields("length len count limit max min size budget used usage policy type types url uri endpoint " +
		"endpoints name names ids ttl expiry expires expiration at in age enabled required supported file path method " +
		"methods algorithm status strength hint format version domain rate price cost provider store manager servers scopes")
	// endings are words that name a credential, also at the end of a longer word: pgpassword, clientsecret.
	endings = strings.Fields("password passwd passphrase passcode pwd secret credential cred authorization cookie " +
		"apikey privatekey secretkey accesskey")
	whole = strings.Fields("pin otp totp cvv cvc jwt") // parts of longer words mean nothing: spin
	// keys are words before "key", and passes words before "pass".
	keys   = strings.Fields("api private access secret signing encryption master session ssh account shared client license")
	passes = strings.Fields("db database user admin root login smtp ftp proxy mysql postgres redis")
	// cursors are words before "token" that make it a place in a list, or a piece of text.
	cursors = strings.Fields("page next nextpage progress continuation sync resume cursor previous prev start end first last " +
		"eos bos pad unk stop special mask per each input output prompt completion")
	// bearers are words before "tokens" that make them credentials.
	bearers = strings.Fields("access refresh auth api bearer session id csrf oauth device push personal security")
)

// kindOfWord classifies a word of a name by itself and the word before.
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

// stems are what names and forms of credentials have in them, by their first letter.
var stems = func() (by [256][]string) {
	for stem := range strings.FieldsSeq("auth basic bearer cooki cred cvc cvv jwt key otp pass pin pwd secret token") {
		by[stem[0]] = append(by[stem[0]], stem)
	}
	return by
}()

// hasStem reports whether a text may hold a credential or the name of one. It spares most texts the rest.
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
