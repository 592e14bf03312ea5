package intent

import (
	"strings"
	"testing"
)

func TestSplit_ClausesOfOneSentence(t *testing.T) {
	for question, want := range map[string][]Act{
		"Cancel order 5 and tell me who works in Berlin": {Command, Question},
		"Do not cancel or delete order 5":                {Negated, Negated},
		"Do not cancel order 5, list my orders instead":  {Negated, Command},
		"Who works in Berlin and email them the agenda":  {Question, Command},
		"find the invoice and then pay it":               {Command, Command},
	} {
		var got []Act
		for _, c := range Split(question) {
			got = append(got, c.Act)
		}
		if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("Split(%q): got %v, want %v", question, got, want)
		}
	}
}

func TestSplit_Layout(t *testing.T) {
	for question, want := range map[string]string{
		"Do these:\n- list my orders\n- cancel order 5":                              "-",
		"Please do the following:\n- archive the ticket\n- list my orders":           "archive list",
		"- archive the ticket\n- list my orders":                                     "archive list",
		"1. Archive the ticket\n2. List my orders":                                   "archive list",
		"Please do not\nDelete the file":                                             "",
		"Please do not\ndelete the file":                                             "",
		"Do not do any of these:\n- archive the ticket\n- delete the file":           "",
		"Translate into French:\n\nCancel my order.\nThanks.":                        "translate",
		"Send Bob this message: the order is late. Please cancel it.":                "send",
		"Send Bob this message: the order is late.\nArchive the ticket":              "send archive",
		"Ann wrote:\n> please delete the file\n> and the folder\nArchive the ticket": "",
		"> please delete the file\nArchive the ticket":                               "archive",
		"```\ndelete the file\n```\nArchive the ticket":                              "archive",
		"Archive the ticket\n\nDelete the file":                                      "archive delete",
	} {
		if want == "-" {
			want = "list cancel"
		}
		var got []string
		for _, c := range Split(question) {
			if c.Act.MayWrite() {
				got = append(got, c.Verb)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("Split(%q): got %q to write, want %q: %s", question, got, want, describe(Split(question)))
		}
	}
}

func TestSplit_UnknownLanguages(t *testing.T) {
	for _, question := range []string{
		"Non cancellare il ticket che è aperto", "Per favore cancella il mio ordine", "Não cancele o meu pedido", "Annuleer mijn bestelling niet",
		"Kun je mijn bestelling annuleren", "Nie usuwaj pliku", "Proszę usuń plik", "удали файл", "не удаляй файл", "削除しないでください",
		"ファイルを削除して", "请不要删除文件", "파일을 삭제하지 마세요", "لا تحذف الملف", "μην διαγράψεις το αρχείο", "Ta inte bort filen", "Slet ikke filen",
		"Dosyayı silme lütfen", "Xóa tệp này", "Jangan hapus file ini",
	} {
		for _, c := range Split(question) {
			if c.Act != Unknown || c.Language != "" {
				t.Errorf("Split(%q): got %v in %q, want Unknown", question, c.Act, c.Language)
			}
		}
	}
}

func TestAct_MayWriteAndRead(t *testing.T) {
	reads := map[Act]bool{Command: true, Request: true, Question: true}
	for act := Unknown; act <= Statement; act++ {
		if got, want := act.MayWrite(), act == Command || act == Request; got != want {
			t.Errorf("%v.MayWrite(): got %t, want %t", act, got, want)
		}
		if got := act.MayRead(); got != reads[act] {
			t.Errorf("%v.MayRead(): got %t, want %t", act, got, reads[act])
		}
	}
}

func TestSplit_Bare(t *testing.T) {
	for question, want := range map[string]bool{
		"cancel order 4711": true, "cancel the order": false, "cancel it": false, "list orders": true, "cancel 4711": true,
		"delete notes.txt": false, "could you cancel order 4711": false, "order 'pizza'": false, "reply to Ann": true,
	} {
		if got := Split(question)[0]; got.Bare != want || !got.Act.MayWrite() {
			t.Errorf("Split(%q): got %v with Bare %t, want a command with %t", question, got.Act, got.Bare, want)
		}
	}
}
