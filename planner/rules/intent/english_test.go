package intent

import "testing"

func TestSplit_English(t *testing.T) {
	check(t, "en", `
Command:archive | Archive ticket 88
Command:archive | archive ticket 88 today
Command:upload | Upload report.pdf to the shared folder
Command:rename | rename the file draft.md to final.md
Command:forward | Forward this email to ops@example.org
Command:reschedule | Reschedule my dentist appointment to Friday at 3 pm
Command:list | list my open tickets
Command:list | List orders
Command:show | show me the contacts in Madrid
Command:add | Add Maria to the invite list
Command:set | set the priority of ticket 9 to high
Command:set | set status of ticket 9 to closed
Command:book | book a table for four
Command:order | order the same again
Command:turn | turn off the alarm
Command:turn | turn on the heating
Command:check | Check out branch main
Command:set | set up a meeting with Bob
Command:send | send it
Command:reply | reply to Anna
Command:archive | Immediately archive ticket 88
Command:archive | Ok, now archive ticket 88.
Command:archive | Hi, archive the ticket
Command:archive | Bob, archive the ticket
Command:archive | For customer 12, archive the ticket
Command:archive | Yes, archive it
Command:archive | No, archive the other one
Command:multiply | multiply 6 by 7
Command:focus | focus the main window
Command:ping | ping the staging server
Command:delete | Delete the file that was uploaded yesterday
Command:delete | delete the mails I have not read
Command:remove | Remove everything Bob has uploaded
Command:find | Find the ticket which is not closed
Command:send | Don't forget to send the minutes
Command:send | do not forget to send the minutes
Command:update | make sure to update the changelog
Command:update | Go ahead and update the changelog
Command:find | help me find the invoice
Command:find | find who works in Lyon
Command:note | note on ticket 88: "customer called back"
Command:tell | Tell Bob not to archive the ticket
Command:remind | Remind me to archive ticket 88
Command:stop | Stop the build
Negated | avoid archiving ticket 88
Negated | Refrain from archiving ticket 88
Negated | Hold off on archiving ticket 88
Conditional Conditional | archive ticket 88, but only if it is old
Negated Negated | Sure, archive ticket 88, why don't you
Request:archived | I'd appreciate it if you archived ticket 88
ActionQuestion | Is it a good idea to archive ticket 88?
ActionQuestion | Is anyone going to archive ticket 88?
ActionQuestion | Who is able to archive ticket 88?
Command:translate | Translate "do not archive ticket 88" into French
Command:translate | Translate into French: archive ticket 88 and close it
Command:summarize | summarize 'delete all files' in one word
Command:write | Write “cancel everything” on the board
Command:explain | Explain the phrase «merge it»
Command:email | Email Bob: please archive ticket 88
Command:read Command:summarize | read and summarize the minutes
Command:find Command:pay | find the invoice and then pay it
Command:archive Command:notify | archive ticket 88, then notify the customer
Command:archive Command:notify | Archive ticket 88; notify the customer
Command:archive Command:notify | Archive ticket 88. Notify the customer.
Command:archive Question | Archive ticket 88 and tell me who opened it
Command:archive Question | Archive ticket 88 and what is the weather in Oslo?
Command:archive Negated | Archive ticket 88 but not ticket 89
Command:archive Negated | archive ticket 88, don't close it
Command:list Request:archive | list my tickets and please archive ticket 88
Command:convert | convert 1.250,50 EUR to dollars
Command:open | open /srv/data/a.b/notes.txt
Command:email | email a.b@c.de the report, e.g. as PDF
Command:schedule | schedule a call at 10:30 a.m. on Monday
Command:search | search: latest rust release
Command:cancel | Task: cancel the booking
Question Command:cancel Command:list | Do the following: cancel the booking and list my trips
Request:archive | Please archive ticket 88
Request:archive | archive ticket 88 please
Request:archive | Could you archive ticket 88?
Request:archive | could you please kindly archive ticket 88
Request:archive | can you archive ticket 88 for me
Request:archive | Will you archive ticket 88?
Request:archiving | would you mind archiving ticket 88?
Request:archive | Would you be so kind to archive ticket 88?
Request:archive | I'd like you to archive ticket 88
Request:archive | I would like to archive ticket 88
Request:archive | I need you to archive ticket 88
Request:archive | I want to archive ticket 88
Request:archive | I want you to archive ticket 88
Request:archive | let's archive ticket 88
Request:archive | I was wondering if you could archive ticket 88
Request:archive Command:notify | Could you archive ticket 88 and notify Bob's team?
Statement Request:archive | It is done, so please archive the ticket
Statement Command:archive | Ticket 88 is done. Archive it.
Statement Command:archive | The customer is happy, archive the ticket
Question Command:send | Who is on call and send them the runbook
Question Command:send | Which invoices are overdue, and send them to Bob
Question Request:send | Who is on call and could you send them the runbook?
Question | Who works in Madrid?
Question | who works in Madrid
Question | where's ticket 88 right now
Question | what is 12 * 7
Question | How big is notes.txt?
Question | how many tickets are open
Question | How much would it cost if we doubled the seats?
Question | when is the next release
Question | Is ticket 88 closed?
Question | Has the release been deployed?
Question | Was ticket 88 archived?
Question | Did Bob archive ticket 88?
Question | Do I have any meetings tomorrow?
Question | Are there free rooms on Monday?
Question | Can you tell me who opened ticket 88?
Question | could you please let me know whether ticket 88 is closed
Question | Tell me about ticket 88
Question | I want to know who opened ticket 88
Question | I'd like to know the price of gold
Question | I wonder who opened ticket 88
Question | do you know where the minutes are
Question | latest news
Question | weather in Paris
Question | order status of 4711
Question | release notes for v2
Question | book reviews for Dune
Question | tickets assigned to me
Question | my next meeting
Question | new contacts since Monday
Question | exchange rate from EUR to USD
Question | Check if ticket 88 is closed
Question | archive ticket 88?
Question | 15% of $2500
Question Question | Who can archive tickets and delete the logs?
Question | hello
Question | what can you do?
Question | What does "archive ticket 88" mean?
ActionQuestion | Should I archive ticket 88?
ActionQuestion ActionQuestion | should we archive ticket 88 or close it?
ActionQuestion | Can I delete the backup?
ActionQuestion | May I archive ticket 88?
ActionQuestion | Shall I send the minutes?
ActionQuestion | Do I need to archive ticket 88?
ActionQuestion | Am I allowed to delete the backup
ActionQuestion | How do I archive a ticket?
ActionQuestion | how can I delete the backup
ActionQuestion | how to archive a ticket
ActionQuestion | How would one archive a ticket?
ActionQuestion | Why should I archive ticket 88?
ActionQuestion | Did you archive ticket 88?
ActionQuestion | have you archived ticket 88 yet?
ActionQuestion | Is it OK to archive ticket 88?
ActionQuestion | is it safe to delete the backup
Hypothetical | Would it be wise to delete the backup?
ActionQuestion | What happens when I archive ticket 88?
ActionQuestion | Why don't you archive ticket 88?
ActionQuestion | why not archive ticket 88
ActionQuestion | How about archiving ticket 88?
ActionQuestion | Do you think I should archive ticket 88?
ActionQuestion | Is there a way to archive tickets?
ActionQuestion | Are you able to archive tickets?
ActionQuestion | Can anyone delete the backup?
ActionQuestion ActionQuestion | Should I archive ticket 88 and notify the customer?
Negated | Do not archive ticket 88
Negated | don't archive ticket 88
Negated | Don’t archive ticket 88
Negated | dont archive ticket 88
Negated | never archive ticket 88
Negated | Please do not archive ticket 88
Negated | please don't archive it
Negated | Under no circumstances archive ticket 88
Negated | You must not archive ticket 88
Negated | you can't archive ticket 88
Negated | I don't want you to archive ticket 88
Negated | I do not want to archive ticket 88
Negated | Let's not archive ticket 88
Negated | Could you please not archive ticket 88?
Negated | Can't you archive ticket 88?
Negated | no archiving of ticket 88, please
Negated | Nobody should archive ticket 88
Negated | archive nothing
Negated | archive no tickets today
Negated | Neither archive nor delete ticket 88
Negated | Neither Bob nor I want to archive ticket 88
Negated | Make sure not to archive ticket 88
Negated Negated | Archive ticket 88. Actually no.
Negated Negated | Archive ticket 88, she says.
Negated Negated | Archive ticket 88, would that work?
Hypothetical Hypothetical:archive | In an ideal world, archive ticket 88
Conditional Conditional:archive | Let's wait and then archive ticket 88
Conditional Conditional:archive | With Bob's permission, archive ticket 88
Conditional:archive | Archive ticket 88 only with approval
Conditional:archive | Archive ticket 88 later
Conditional:archive | Archive ticket 88 every night
Statement | Archive ticket 88 of acme sounds dangerous
Negated Negated | Do not archive or delete ticket 88
Negated Negated | never merge the branch and deploy the site
Negated Negated Negated | Do not archive, close or delete ticket 88
Negated Command:list | Do not archive ticket 88, list my tickets instead
Negated Command:list | Don't archive ticket 88 but list my tickets
Negated Command:list | don't archive ticket 88; list my tickets
Negated Command:show | Do not archive it, only show it to me
Negated Command:list | Do not archive ticket 88. List my tickets.
Negated Request:list | Do not archive ticket 88 and please list my tickets
Negated Question | Do not archive ticket 88, just tell me who opened it
Negated Negated | Archive ticket 88. Actually, don't.
Negated Negated | archive ticket 88, never mind
Conditional | If it rains archive ticket 88
Conditional Conditional:archive | If ticket 88 is old, archive it
Conditional Conditional:archive Conditional:notify | If ticket 88 is old, archive it and notify Bob's team
Conditional:archive | Archive ticket 88 if it is old
Conditional:archive | Archive ticket 88, if it is old
Conditional:archive | archive ticket 88 unless the customer objects
Conditional:archive | Archive ticket 88 once it is closed
Conditional:archive | Archive ticket 88 as soon as Bob replies
Conditional:archive | archive ticket 88 only if Bob agrees
Conditional:archive | Could you archive ticket 88 if it is old?
Conditional:archive | archive ticket 88 when the customer replies
Conditional:archive | Archive ticket 88 should it be older than a year
Conditional Conditional:archive | When the customer replies, archive ticket 88
Conditional Conditional:archive | Once Bob agrees, please archive ticket 88
Conditional Conditional:archive | Unless Bob objects, archive ticket 88
Conditional Conditional:archive | As soon as the build is green, archive ticket 88
Conditional Conditional:archive | In case it rains, archive ticket 88
Conditional Conditional:archive | Should the customer reply, archive ticket 88
Conditional:archive Conditional:notify | Archive ticket 88 and notify the customer if it is old
Conditional Conditional:archive Conditional:close | If it is old, archive it. Otherwise close it.
Conditional:archive | Archive ticket 88 after Bob confirms
Conditional Conditional:archive | wait until Bob replies, then archive ticket 88
Question:check Conditional:archive | Check if ticket 88 is old and archive it
Question Conditional:archive | Is ticket 88 old? Then archive it.
Question Conditional Conditional:archive | Is ticket 88 old? If so, archive it.
Command:archive | Archive ticket 88 as soon as possible
Request:archive | Could you archive ticket 88 if possible?
Negated Request:delete | I couldn't delete the file, please delete it
Reported Reported:archive | as Bob said, archive ticket 88
Conditional Question | If the radius is 5, what is the area?
Hypothetical | What if I archive ticket 88?
Hypothetical | what would happen if we deleted the backup
Hypothetical | Suppose I archive ticket 88
Hypothetical | Imagine we archived ticket 88
Hypothetical | I might archive ticket 88
Hypothetical | I was thinking of archiving ticket 88
Hypothetical | I'm thinking about archiving ticket 88
Hypothetical | Maybe archive ticket 88
Hypothetical | Would it help if I archived ticket 88?
Hypothetical | Let's say we archive ticket 88
Hypothetical | I wonder if I should archive ticket 88
Hypothetical | I could archive ticket 88
Hypothetical:act | act as if you archived ticket 88
Hypothetical Hypothetical:archive | Suppose ticket 88 is old, archive it
Hypothetical Hypothetical:archive | Suppose ticket 88 is old. Archive it.
Reported | Bob said to archive ticket 88
Reported | she asked me to archive ticket 88
Reported | They told us that ticket 88 is old
Reported | My boss wants me to archive ticket 88
Reported | The customer said: archive ticket 88
Reported | It says to archive ticket 88
Reported | I was told to archive ticket 88
Reported Reported:archive | According to Bob, archive ticket 88
Reported Reported:delete | Bob said to archive ticket 88 and delete the backup
Reported Command:list | Bob said to archive ticket 88. List my tickets.
Quoted | "Archive ticket 88"
Quoted | 'archive ticket 88'
Quoted | „Archive ticket 88“
Quoted | > archive ticket 88
Quoted Question | "Archive ticket 88". Who wrote that?
Command:translate Quoted | Translate this: hello. Archive ticket 88.
Past | I archived ticket 88
Past | I have archived ticket 88
Past | we've deleted the backup
Past | I had already archived it
Past | Ticket 88 was archived yesterday
Past | The release has been deployed
Past | archived the ticket yesterday
Past | I archived ticket 88 and deleted the backup
Past Command:list | I archived ticket 88. List my tickets.
Statement | I work in Madrid
Statement | I will archive ticket 88
Statement Statement | I will archive ticket 88 and delete the backup
Statement | The minutes are on my desk
Statement | Ticket 88 is late
Statement | You can archive ticket 88
Negated Command:list | Before deleting the backup, list the folder
Negated Command:read | Instead of deleting notes.txt, read it
Negated Command:close | Rather than deleting ticket 88, close ticket 89
Negated Command:archive | Don't archive 88, archive 89 instead
Negated Command:archive | don't archive ticket 88, archive ticket 89
Negated | Do anything but archive ticket 88
Negated | Forget about archiving ticket 88
Negated | Skip archiving ticket 88
Negated Negated | archive ticket 88 - yes or no?
Command:archive Request | archive ticket 88, will you?
Command:archive | Remember to archive ticket 88
Command:archive | archive ticket 88 if you don't mind
Request:archive | It would be great if you could archive ticket 88
Request:archive | I'd be glad if you could archive ticket 88
Request:archive | Be so kind as to archive ticket 88
Conditional:archive | Only archive ticket 88 after approval
Conditional:archive | archive ticket 88 the moment an alert fires
Command:delete | delete the mails after 2024-01-01
ActionQuestion | tell me why we should archive ticket 88
ActionQuestion | who told you to archive ticket 88?
Past | Thanks for archiving ticket 88
Negated Negated | Archive ticket 88 - no, leave it.
Negated Negated | Archive ticket 88! No, cancel that.
Negated Negated | Archive ticket 88. Wait, stop!
Conditional Conditional:archive | Ask me, then archive ticket 88
Conditional Conditional:archive | Get approval from Bob and archive ticket 88
Conditional Conditional:archive | From now on, archive ticket 88
Conditional:archive | archive all tickets except 88
Command:delete | delete the second ticket
Past | Roll back staging was a mistake
Reported | The mail reads: archive ticket 88
`)
}
