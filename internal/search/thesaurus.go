package search

import "strings"

// thesaurus lists words that people and tools use for the same thing; one group a line. A word may be in several groups; the relation is
// not transitive.
const thesaurus = `
get retrieve fetch obtain read show list view
find search lookup locate discover query explore browse
create add new generate make build insert register
add sum plus total addition
subtract minus difference
multiply times product
delete remove erase clear drop uninstall
update modify change edit set adjust alter
buy purchase order shop
sell sale list
send deliver dispatch forward
send message text notify
save write store export
calculate compute evaluate determine solve
convert conversion transform exchange
analyze examine inspect assess evaluation review
compare comparison versus difference
recommend suggest suggestion advice propose
schedule plan arrange appointment calendar booking
reschedule move postpone
book reserve reservation booking
cancel abort stop terminate
start begin launch run execute
summarize summary overview brief digest
translate translation language
check verify validate validation
predict forecast prediction estimate
visualize chart plot graph diagram
movie film cinema
cast star starring actor actress feature featuring
direct directed director
show tv television series
song music track audio
singer artist musician band
picture image photo photograph painting artwork
video clip
car vehicle automobile auto
hotel accommodation lodging stay room hostel
flight airline plane airport fly
train rail railway ticket station
trip travel journey vacation tour itinerary holiday tourism
weather temperature rain climate sunny humidity forecast
job career employment work hiring vacancy
employee staff worker personnel
salary wage pay income compensation
company business firm corporation enterprise
stock share equity
price cost rate quote fee
currency money exchange dollar euro forex
crypto cryptocurrency bitcoin token coin
news headline article latest
paper article publication research study
document doc word docx
spreadsheet excel sheet csv xlsx
presentation slide slides ppt pptx powerpoint deck
file path directory
folder directory
email mail inbox
message sms text chat
phone call telephone
recipe cook cooking dish meal ingredient
food meal nutrition diet eat
restaurant dining dinner lunch cafe eat
exercise workout fitness gym training
doctor physician medical clinic hospital
illness disease sickness condition
medicine drug medication pharmaceutical
patient medical health
house home property apartment estate
rent rental lease hire
address location place geocode
map direction route navigation
near nearby close around
distance far
date day today tomorrow time
when date time schedule
where location place address
time clock hour timezone
meeting appointment event calendar
event concert show
task todo reminder
note memo
child kid baby
person people user
student pupil
teacher instructor
school university college
course class lesson
book novel literature
author writer
game gaming play
player athlete
team club
team department division
match game fixture
score result
football soccer
website site webpage page url web
internet web online
domain whois dns
code program source script
repository repo git
commit git
bug issue error
database sql table
schema column
account profile
password credential
sign login authenticate
user account
picture avatar
law legal lawyer attorney
lawyer attorney legal
court case legal
tax taxes
loan mortgage credit
invest investment investor portfolio stock
bank account banking
gift present
clothes clothing fashion outfit
pet animal dog cat
plant garden flower
star astronomy planet space
photo camera
device hardware
computer pc laptop
network wifi internet
connect link
volume sound
percentage percent ratio
average mean
equation formula
big large size
area region
country nation
city town
zip postal postcode
temperature celsius fahrenheit
length distance
weight mass
speed velocity
quick fast
history past historical
information info detail details
description explain
definition meaning dictionary
synonym thesaurus word
quote quotation saying
joke fun humor
fact trivia
random dice
horoscope zodiac astrology
lyrics song
podcast episode
review rating opinion feedback
cheap affordable budget discount deal coupon
product item goods
delivery shipping package parcel
brightness light lighting
battery power
emergency ambulance
voice speech
keyword seo
advertisement ad marketing campaign
resume cv
knowledge wiki wikipedia encyclopedia
`

func parseThesaurus(text string) map[string][]string {
	s := map[string][]string{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		for i := range words {
			words[i] = Stem(words[i])
		}
		for _, a := range words {
			for _, b := range words {
				if a != b {
					s[a] = append(s[a], b)
				}
			}
		}
	}
	return s
}

// Thesaurus answers which stems mean nearly the same. It is immutable.
type Thesaurus struct{ related map[string][]string }

// NewThesaurus returns the thesaurus that searches use.
func NewThesaurus() *Thesaurus { return &Thesaurus{parseThesaurus(thesaurus)} }

// Related reports whether two stems (see [Stem]) are the same or stand in one group.
func (t *Thesaurus) Related(a, b string) bool {
	if a == b {
		return true
	}
	for _, s := range t.related[a] {
		if s == b {
			return true
		}
	}
	return false
}
