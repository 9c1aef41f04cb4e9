package knowledge

import (
	"strings"
	"testing"
)

// household are papers as people have them, in both languages.
var household = map[string]string{
	"fridge.md":     "# Refrigerator KX-300\n## Care\nClean the air filter every three months with lukewarm water.\n## Errors\nE05: the door was open for more than two minutes. Close it firmly.\nE11: the fan is blocked by ice. Defrost for 24 hours.\n",
	"洗衣机说明书.md":     "# 滚筒洗衣机\n## 清洁保养\n滤网请每个月清洗一次，先关掉电源和水龙头。\n## 故障代码\nE05 表示进水超时，请检查水龙头有没有打开。\nE20 表示排水不畅，请清洗排水泵。\n## 洗涤程序\n羊毛衫请用羊毛程序，水温不超过30度，转速600转。\n",
	"lease.txt":     "Lease agreement. The monthly rent is 1,250 euros and is due on the third working day. The deposit is three months' rent. Either party may give notice of three months. Pets need the landlord's consent.\n",
	"租房合同.txt":      "租赁合同。月租金人民币四千五百元，每月五号之前支付。押金为两个月租金。退租需要提前三十天书面通知房东。物业费由房东承担，水电费由租客承担。\n",
	"grandma.html":  "<html><h1>Apple pie</h1><p>Peel eight apples. Mix 200 g flour, 100 g butter and an egg. Bake for 45 minutes at 180 degrees.</p><h1>Potato soup</h1><p>Boil a kilo of potatoes with leek and cream.</p></html>",
	"菜谱.md":         "# 红烧肉\n五花肉一斤，焯水后用冰糖炒糖色，加黄酒、生抽、老抽，小火炖一个半小时。\n# 西红柿炒鸡蛋\n鸡蛋三个打散，先炒鸡蛋再下西红柿，放少许糖。\n",
	"school.txt":    "School calendar. Autumn holidays are from 14 to 25 October. The parents' evening is on 6 November at 19:30 in room 12. Swimming lessons are on Tuesdays.\n",
	"wifi.txt":      "Guest network: Lindenhof-Guest. The password is blue-harbour-77. The router stands in the hall cupboard.\n",
	"insurance.txt": "Household insurance, policy number HX-558210. Damage must be reported within seven days by telephone 0800 4411. The deductible is 150 euros. Bicycles are insured up to 1,000 euros.\n",
	"体检报告.txt":      "体检报告。血压128/82，空腹血糖5.4，总胆固醇5.9偏高，建议少吃油腻食物，三个月后复查血脂。视力左眼4.8右眼4.9。\n",
}

// TestQuality: what people ask of their papers is found, by words of their own; what is in none of them is not.
func TestQuality(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf) {
		for name, words := range household {
			s.write(name, words)
		}
		defer s.open(nil)()
		right, asked := 0, 0
		for _, test := range [][2]string{ // the question, and words of the piece that answers it
			{"how often do I have to clean the filter of the fridge", "every three months"},
			{"what does error E11 mean on the refrigerator", "blocked by ice"},
			{"洗衣机的滤网多久洗一次", "每个月清洗一次"},
			{"洗衣机显示E05是怎么回事", "进水超时"},
			{"洗衣机出现E20怎么办", "排水不畅"},
			{"羊毛衫怎么洗", "羊毛程序"},
			{"how much is the rent", "1,250 euros"},
			{"can we have a pet in the flat", "landlord's consent"},
			{"how long is the notice period of the lease", "three months"},
			{"房租什么时候交", "每月五号"},
			{"退租要提前多久通知", "三十天"},
			{"押金是多少", "两个月租金"},
			{"水电费谁出", "租客承担"},
			{"how long does the apple pie bake", "45 minutes"},
			{"what goes into the potato soup", "leek"},
			{"红烧肉怎么做", "炒糖色"},
			{"西红柿炒鸡蛋先放什么", "先炒鸡蛋"},
			{"when are the autumn holidays", "14 to 25 October"},
			{"when is the parents evening", "6 November"},
			{"what is the wifi password for guests", "blue-harbour-77"},
			{"what is the policy number of our insurance", "HX-558210"},
			{"is my bicycle insured", "1,000 euros"},
			{"我的胆固醇高不高", "总胆固醇5.9"},
			{"我的血压是多少", "128/82"},
		} {
			asked++
			found, err := s.Search(t.Context(), "home", test[0], 1500)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) > 0 && strings.Contains(found[0].Piece.Text, test[1]) {
				right++
			} else if len(found) == 0 {
				t.Logf("%s: nothing", test[0])
			} else {
				t.Logf("%s: %s: %.60q", test[0], found[0].Document.Name, found[0].Piece.Text)
			}
		}
		if right*100 < asked*95 {
			t.Errorf("%d of %d questions are answered first", right, asked)
		}
		for _, query := range []string{"who won the world cup", "今天天气怎么样", "play some music", "唱首歌给我听", "what is the capital of France", "讲个笑话", "", "???", "the", "怎么"} {
			if got := s.finds("home", query); got != "" {
				t.Errorf("%q: found %s", query, got)
			}
		}
	})
}
